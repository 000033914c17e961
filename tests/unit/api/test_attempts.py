"""What is guessed at too often is looked at no more, other things are, and it passes."""

from __future__ import annotations

import pytest

from api.http import attempts as module
from api.http.attempts import MOST, PER_SECOND, Attempts
from servioticy.refusals import Conflict, Refused


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def attempts(clock: Clock) -> Attempts:
    return Attempts(clock)


def tried(attempts: Attempts, what: str, error: Exception | None = None) -> bool:
    """Whether what was tried was looked at."""
    seen = False
    try:
        with attempts.counted(what):
            seen = True
            if error is not None:
                raise error
    except Refused:
        pass
    return seen


def test_so_many_are_refused_and_no_more_until_later(attempts: Attempts, clock: Clock) -> None:
    found = [tried(attempts, "kitchen", Conflict("x")) for _ in range(int(MOST) + 1)]

    assert found == [True] * int(MOST) + [False]
    assert not tried(attempts, "kitchen")
    assert tried(attempts, "hall")
    clock.now += 1 / PER_SECOND
    assert tried(attempts, "kitchen", Conflict("x"))
    assert not tried(attempts, "kitchen")


def test_what_succeeds_or_is_only_mistyped_does_not_count(attempts: Attempts) -> None:
    for _ in range(100):
        assert tried(attempts, "kitchen")
        assert tried(attempts, "kitchen", Refused("x"))


def test_what_is_kept_is_bounded(attempts: Attempts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REMEMBERED", 10)
    for number in range(20):
        assert tried(attempts, f"room {number}", Conflict("x"))

    assert len(attempts._of) == 10
