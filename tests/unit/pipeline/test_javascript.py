"""The evaluator of JavaScript by itself: it asks on until all trees are grown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pytest
from engine_builders import C, D, a_graph, document
from hypothesis import given
from hypothesis import strategies as st
from python_evaluator import Compute, PythonEvaluator

from sandbox import TookTooLong
from sandbox.trees import Bounds, Call, Event, Grown, Last
from servioticy.domain.evaluators import javascript
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.known_streams import Region

(REGION,) = a_graph({"c": ("d", "c"), "e": ("c",)}, options={"staleness": "input"}).regions()
NUMBERS = {each.ref: number for number, each in enumerate(REGION.streams) if each is not None}
ANY = Bounds(9, 9)


def a_call(region: Region, *timestamps: int, bounds: Bounds = ANY) -> Call:
    trees = [[Event(NUMBERS[D], at, document(at))] for at in timestamps]
    return Call(region.wiring, region.names, [], trees, bounds)


def a_sum(trigger: object, values: Sequence[bytes | None]) -> int:
    """Depends on what was before."""
    return sum(len(each or b"") for each in values) + len(str(trigger))


class Moody:
    """A sandbox that grows as many trees of a call as it likes, or cannot grow the next one."""

    def __init__(self, moods: Sequence[int], compute: Compute = a_sum) -> None:
        self._moods = iter(moods)
        self._inner = PythonEvaluator(compute)
        self.asked: list[list[int]] = []

    def grow(
        self,
        tenant: str,
        calls: Sequence[Call],
        _within: float | None = None,
        *,
        beside: bool = False,
    ) -> list[Grown]:
        self.asked.append([len(each.trees) for each in calls])
        return [self._some(tenant, each) for each in calls]

    def _some(self, tenant: str, call: Call) -> Grown:
        """A single step is always done; 0 is a tree that fails, -1 a call that gets no turn."""
        steps = call.trees[0][0].only is not None
        most = len(call.trees) if steps else next(self._moods, len(call.trees))
        if most <= 0:
            return Grown([], [], failed=most == 0)
        return self._inner.evaluate(tenant, [call_with(call, most)])[0]


def call_with(call: Call, most: int) -> Call:
    return Call(call.wiring, call.names, call.lasts, call.trees[:most], call.bounds, call.refused)


def whole(call: Call) -> Grown:
    return PythonEvaluator(a_sum).evaluate("1", [call])[0]


@given(
    st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=8), min_size=1, max_size=3),
    st.lists(st.integers(-1, 3), max_size=20),
)
def test_trees_come_out_the_same_however_many_are_grown_at_once(
    calls: list[list[int]], moods: list[int]
) -> None:
    """The last updates and states that some trees leave are those that the next ones find."""
    asked = [a_call(REGION, *timestamps) for timestamps in calls]

    found = JavaScript(Moody(moods)).evaluate("1", asked)

    for call, grown in zip(asked, found, strict=True):
        expected = whole(call)
        assert grown.made == expected.made
        assert sorted(grown.ended) == sorted(expected.ended)
        assert not grown.failed


def test_all_that_is_left_is_asked_for_together() -> None:
    sandbox = Moody([1, 3, 3])

    JavaScript(sandbox).evaluate("1", [a_call(REGION, 1, 2, 3), a_call(REGION, 1, 2, 3)])

    assert sandbox.asked == [[3, 3], [2]]


def test_a_call_that_got_no_turn_is_asked_for_again() -> None:
    """There was no time for it: that is no reason to take it step by step."""
    sandbox = Moody([3, -1])

    JavaScript(sandbox).evaluate("1", [a_call(REGION, 1, 2, 3), a_call(REGION, 1, 2, 3)])

    assert sandbox.asked == [[3, 3], [3]]


def test_after_a_tree_that_fails_others_come_one_at_a_time() -> None:
    sandbox = Moody([0])

    JavaScript(sandbox).evaluate("1", [a_call(REGION, 1, 2, 3)])

    steps = [[1], [1]]
    assert sandbox.asked == [[3], *steps, [1], [1]]


def test_of_what_makes_too_much_those_before_it_come() -> None:
    by = JavaScript(Moody([0, 1, 0], lambda trigger, _values: trigger.timestamp))
    (region,) = a_graph({"c": ("d",), "e": ("c",)}).regions()
    call = a_call(region, 5, 4, 6, bounds=Bounds(9, 1))

    (grown,) = by.evaluate("1", [call])
    assert (list(grown.made), grown.failed) == ([], True)
    (grown,) = by.evaluate("1", [Call(*_after(call, 9))])
    assert (len(grown.made), grown.failed) == (3, False)


def _after(call: Call, last: int) -> tuple:
    """The call where nothing is newer than the last output."""
    lasts = [Last(NUMBERS[C], last, None)]
    return call.wiring, call.names, lasts, call.trees, call.bounds


def test_it_takes_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(javascript.time, "monotonic", lambda: float(next(ticks)))
    within: list[float | None] = []

    class Slow(Moody):
        def grow(self, tenant, calls, seconds=None):
            within.append(seconds)
            return super().grow(tenant, calls, seconds)

    with pytest.raises(TookTooLong):
        JavaScript(Slow([1, 1, 1])).evaluate("1", [a_call(REGION, 1, 2, 3, 4)], 2.5)
    assert within == [1.5, 0.5]
    JavaScript(Slow([1])).evaluate("1", [a_call(REGION, 1, 2)])
    assert within[2:] == [None, None]
