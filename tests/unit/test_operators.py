"""Operators by themselves: what bounds them, and what they are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from sandbox import TookTooLong
from sandbox.trees import CLOCK, Bounds, Call, Event, Kept, Node, Wake, Wiring
from servioticy.domain.evaluators import operators
from servioticy.domain.evaluators.evaluator import Lacking
from servioticy.domain.evaluators.operators import (
    MAX_CHANGES,
    MAX_KEY_BYTES,
    MAX_VALUE_BYTES,
    Answer,
    Ends,
    Entries,
    Operators,
    Output,
    Step,
    _Steps,
)
from servioticy.domain.evaluators.steps import Outcome
from servioticy.domain.operator_code import OperatorCode

CODE = OperatorCode("o", ("d0", "d1"), ())


class Plain:
    """Does what a test says."""

    takes_answers = False

    def __init__(self, does: Callable[[Step, Entries], Output | None]) -> None:
        self._does = does
        self.steps: list[Step] = []

    def keys(self, _code: OperatorCode, _argument: int | None, _event: Event) -> Sequence[bytes]:
        return ()

    def step(self, step: Step, entries: Entries) -> Answer:
        self.steps.append(step)
        made = self._does(step, entries)
        return Answer(() if made is None else [made])


@pytest.fixture
def burnt(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets the thread have taken seconds of the processor; how long that really takes differs."""
    taken = 0.0

    def burn(seconds: float) -> None:
        nonlocal taken
        taken += seconds

    monkeypatch.setattr(operators, "thread_time", lambda: taken)
    return burn


def call(*events: Event, kept: Sequence[Kept] = ()) -> Call:
    """A composite over two streams, with a clock: each event is a tree."""
    wiring = Wiring(
        "w",
        (
            Node((), CODE, ((1,), (2,)), keeps=True),
            Node((Wake(0, 0, 0),)),
            Node((Wake(0, 0, 1),)),
            Node((Wake(0, 0, CLOCK),)),
        ),
    )
    trees = [[each] for each in events]
    return Call(wiring, ("so/c@1", "", "", ""), (), trees, Bounds(9, 9), kept=kept)


def known(key: bytes, value: bytes | None = None, due: int | None = None) -> Kept:
    return Kept(0, key, value, due)


def test_a_step_is_told_what_has_woken_it_and_what_there_is() -> None:
    plain = Plain(lambda step, _entries: Output(step.trigger.timestamp, b"{}"))
    (grown,) = Operators(plain).evaluate("t", [call(Event(2, 5, b"[2]"), Event(1, 4, b"[1]"))])

    assert [(s.argument, s.trigger.timestamp, s.due) for s in plain.steps] == [
        (1, 5, None),
        (0, 4, None),
    ], "whatever the timestamps are: that is the operator's affair"
    second = plain.steps[1]
    assert [each and each.document for each in second.inputs] == [b"[1]", b"[2]"]
    assert second.own is not None
    assert second.own.timestamp == 5
    assert [[made.timestamp for made in tree] for tree in grown.made] == [[5], [4]]


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"k" * (MAX_KEY_BYTES + 1), b""), (b"k", b"v" * (MAX_VALUE_BYTES + 1))],
    ids=["key", "value"],
)
def test_what_is_too_large_is_not_kept_and_ends_the_computation(key: bytes, value: bytes) -> None:
    operators = Operators(Plain(lambda _step, entries: entries.put(key, value)))
    (grown,) = operators.evaluate("t", [call(Event(1, 1, b"1"), kept=[known(key)])])

    assert [each.kind for each in grown.ended] == ["error"]
    assert grown.kept == []


def test_the_largest_is_kept() -> None:
    key, value = b"k" * MAX_KEY_BYTES, b"v" * MAX_VALUE_BYTES
    operators = Operators(Plain(lambda _step, entries: entries.put(key, value, 7)))
    (grown,) = operators.evaluate("t", [call(Event(1, 1, b"1"), kept=[known(key)])])

    assert [each.kind for each in grown.ended] == ["collected"]
    assert grown.kept == [known(key, value, 7)]


@pytest.mark.parametrize(("number", "kind"), [(0, "collected"), (1, "error")])
def test_a_computation_changes_so_many_entries(number: int, kind: str) -> None:
    keys = [b"%d" % each for each in range(MAX_CHANGES + number)]

    def puts(_step: Step, entries: Entries) -> None:
        for each in keys:
            entries.put(each, b"v")

    asked = call(Event(1, 1, b"1"), kept=[known(each) for each in keys])
    (grown,) = Operators(Plain(puts)).evaluate("t", [asked])

    assert [each.kind for each in grown.ended] == [kind]
    assert len(grown.kept) == (0 if number else MAX_CHANGES)


def test_what_is_not_known_is_asked_for_with_the_call_that_lacks_it() -> None:
    operators = Operators(Plain(lambda _step, entries: entries.put(b"k", b"v")))
    with pytest.raises(Lacking) as lacking:
        operators.evaluate("t", [call(), call(Event(1, 1, b"1"))])

    assert (lacking.value.keys, lacking.value.calls) == ([(0, b"k")], [1])


def test_a_time_comes_once_and_not_before_it_is_due() -> None:
    plain = Plain(lambda step, _entries: Output(step.trigger.timestamp, b"{}"))
    times = [Event(3, at, b"k") for at in (9, 10, 11)]
    (grown,) = Operators(plain).evaluate("t", [call(*times, kept=[known(b"k", b"v", 10)])])

    assert [(each.argument, each.due, each.trigger.timestamp) for each in plain.steps] == [
        (None, b"k", 10)
    ]
    assert [each.times for each in grown.ended] == [1], "of others nothing is told"
    assert grown.kept == [known(b"k", b"v")], "or it would come for ever"


def test_a_time_at_which_it_ends_with_an_error_has_come_all_the_same() -> None:
    """It would be told again each minute, and a hundred of them before all others for ever."""

    def ends(_step: Step, entries: Entries) -> None:
        entries.put(b"k", b"other", 20)
        raise Ends("error", "no")

    asked = call(Event(3, 11, b"k"), kept=[known(b"k", b"v", 10)])
    (grown,) = Operators(Plain(ends)).evaluate("t", [asked])

    assert [each.kind for each in grown.ended] == ["error"]
    assert grown.kept == [known(b"k", b"v")], "nothing else of what it was about to keep"


def test_what_counts_as_not_computed_has_kept_nothing() -> None:
    """After a crash: subscribers got nothing of it, and what they got next counts without it."""

    class Undone(_Steps):
        def decides(self, *_: object) -> Outcome:
            return Outcome((), "timeout")

    plain = Plain(lambda _step, entries: entries.put(b"k", b"v"))
    grown = Undone(call(Event(1, 1, b"1"), kept=[known(b"k")]), plain).grow()

    assert [each.kind for each in grown.ended] == ["timeout"]
    assert grown.kept == []


def test_between_two_calls_it_is_looked_whether_there_is_time(
    burnt: Callable[[float], None],
) -> None:
    def slow(step: Step, _entries: Entries) -> Output:
        burnt(0.5)
        return Output(step.trigger.timestamp, b"{}")

    plain = Plain(slow)
    evaluator = Operators(plain)
    with pytest.raises(TookTooLong):
        evaluator.evaluate("t", [call(Event(1, 1, b"1")) for _ in range(3)], 0.4)
    assert len(plain.steps) == 1
    assert evaluator.processor_seconds("t").programs == 0.5
    assert evaluator.processor_seconds("other").programs == 0
    assert evaluator.is_ready("t")


def test_what_many_updates_lack_is_asked_for_together() -> None:
    """Asked for one after the other, each question would have all before computed again."""
    events = [Event(1, at, b"%d" % at) for at in range(50)]
    plain = Plain(lambda step, entries: entries.put(step.trigger.document or b"", b"kept"))

    with pytest.raises(Lacking) as lacking:
        Operators(plain).evaluate("t", [call(*events[:30]), call(*events[30:])])

    keys = [(0, b"%d" % at) for at in range(50)]
    assert lacking.value.keys == keys
    assert lacking.value.calls == [0] * 30 + [1] * 20


def test_it_takes_too_long_between_two_updates_of_one_call(burnt: Callable[[float], None]) -> None:
    plain = Plain(lambda _step, _entries: burnt(0.02))
    with pytest.raises(TookTooLong):
        Operators(plain).evaluate("t", [call(*[Event(1, at, b"{}") for at in range(9)])], 0.03)

    assert len(plain.steps) == 2
