"""What a program remembers for nobody is forgotten, and its memory given back."""

from __future__ import annotations

import pytest

from servioticy.forgetting import LOOK_SECONDS, Forgetting


class Ended(Exception):
    """Of the thread, which has no end by itself."""


def test_memory_is_given_back_where_something_was_forgotten() -> None:
    forgotten, asked, given_back = [0, 0], list[float](), list[int]()

    def way(number: int):
        def forget(seconds: float) -> int:
            asked.append(seconds)
            return forgotten[number]

        return forget

    forgetting = Forgetting(600.0, [way(0), way(1)], lambda: given_back.append(1))
    forgetting.look()
    assert given_back == []
    forgotten[0] = 3
    forgetting.look()

    assert given_back == [1]
    assert asked == [600.0] * 4, "each is asked, whatever another has forgotten"


@pytest.mark.parametrize(("seconds", "pause"), [(600.0, LOOK_SECONDS), (20.0, 2.0)])
def test_it_looks_often_enough(seconds: float, pause: float) -> None:
    slept: list[float] = []

    def sleep(each: float) -> None:
        slept.append(each)
        if len(slept) > 1:
            raise Ended

    with pytest.raises(Ended):
        Forgetting(seconds, [], sleep=sleep)._run()
    assert slept == [pause] * 2


def test_one_that_fails_is_told_and_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[float] = []

    def fails(seconds: float) -> int:
        asked.append(seconds)
        raise RuntimeError("a bug")

    def sleep(_seconds: float) -> None:
        if len(asked) > 1:
            raise Ended

    with pytest.raises(Ended):
        Forgetting(600.0, [fails], sleep=sleep)._run()
    assert len(asked) == 2 and caplog.text.count("forgetting_failed") == 2
