"""What is measured of woven calls, which belong together, and what is dropped."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator, Sequence

import msgspec
import pytest
import woven_steps
from woven_steps import TABLE, Table, Update, fails, first, later, turns, whole

from monitoring.configuration import Aspect
from monitoring.model import Calls, Measurement, Node, ResourceProfile, RuntimePerformance
from monitoring.outbox import MOST_BYTES_EACH, Outbox
from monitoring.sequences import AROUND
from monitoring.weaving.weaver import Weaver

NAME = woven_steps.__name__
UPDATES = [Update(7), Update(8)]


class Woven:
    """A weaver, and what comes of it."""

    def __init__(self) -> None:
        self.weaver, self.outbox = Weaver("here/tests/1"), Outbox()

    def weave(self, *aspects: Aspect) -> None:
        self.reports = self.weaver.weave(aspects, self.outbox)

    def told(self) -> list[Measurement]:
        self.weaver.tell_calls()
        return self.outbox.take(10_000)


@pytest.fixture
def woven() -> Iterator[Woven]:
    made = Woven()
    yield made
    made.weaver.unweave()


def sequences(measured: Sequence[Measurement]) -> set[str]:
    return {each.sequence for each in measured if not isinstance(each, Calls)}


def test_a_runtime_has_its_node_its_times_and_its_sequence(woven: Woven) -> None:
    woven.weave(Aspect(f"{NAME}.first", purpose="counting"))
    began = time.time_ns()
    TABLE["first"](UPDATES)
    (measured,) = woven.told()

    assert isinstance(measured, RuntimePerformance)
    assert measured.node == Node("here/tests/1", "counting")
    assert measured.place == f"{NAME}.first"
    assert measured.start is not None
    assert measured.end is not None
    assert began <= measured.start <= measured.end
    assert measured.sequence


def test_what_is_called_meanwhile_is_of_the_same_sequence(woven: Woven) -> None:
    """Two calls of the whole are two sequences, of three steps each."""
    woven.weave(Aspect(f"{NAME}.*"), Aspect(f"{NAME}.Table.*"))
    whole(UPDATES)
    one = woven.told()
    whole(UPDATES)
    other = woven.told()

    assert [each.place.rpartition(".")[2] for each in one] == ["first", "second", "whole"]
    assert len(sequences(one)) == len(sequences(other)) == 1
    assert sequences(one) != sequences(other)


def test_a_sequence_may_stand_among_the_arguments(woven: Woven) -> None:
    """So steps belong together that nothing woven calls, in whichever threads they are."""
    woven.weave(Aspect(f"{NAME}.first", sequence="updates.0.offset"))
    first(UPDATES)
    thread = threading.Thread(target=first, args=(UPDATES,))
    thread.start()
    thread.join()
    first([Update(9)])
    of = [each.sequence for each in woven.told() if isinstance(each, RuntimePerformance)]

    assert of[0] == of[1] != of[2]
    assert of[0].endswith(":7")


def test_where_its_place_is_empty_a_sequence_is_a_new_one(woven: Woven) -> None:
    woven.weave(Aspect(f"{NAME}.first", sequence="updates.0.offset"))
    first([])
    first([])

    assert len(sequences(woven.told())) == 2


def test_before_knows_the_start_and_after_the_end(woven: Woven) -> None:
    """Two places make one measurement: who reads them puts them together by sequence."""
    woven.weave(
        Aspect(f"{NAME}.first", advice="before", purpose="both", sequence="updates.0.offset"),
        Aspect(
            f"{NAME}.Table.second", advice="after", purpose="both", sequence="updates.0.offset"
        ),
    )
    whole(UPDATES)
    begins, ends = woven.told()

    assert isinstance(begins, RuntimePerformance)
    assert isinstance(ends, RuntimePerformance)
    assert (begins.end, ends.start) == (None, None)
    assert begins.sequence == ends.sequence
    assert (begins.start or 0) <= (ends.end or 0)


def test_a_profile_tells_what_a_call_took(woven: Woven) -> None:
    woven.weave(Aspect(f"{NAME}.turns", measures=("profile",)))
    turns(200)
    *_, outermost = woven.told()

    assert isinstance(outermost, ResourceProfile)
    assert 0 < outermost.processor <= outermost.end - outermost.start + 10_000_000
    assert outermost.collections >= 0


def test_calls_are_counted_and_told_once(woven: Woven) -> None:
    woven.weave(Aspect(f"{NAME}.fails", measures=("count",)))
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            fails()
    (told,) = woven.told()

    assert isinstance(told, Calls)
    assert (told.calls, told.failed) == (3, 3)
    assert woven.told() == []


def test_an_error_is_told_by_its_class(woven: Woven) -> None:
    woven.weave(Aspect(f"{NAME}.fails"))
    with pytest.raises(ZeroDivisionError):
        fails()
    (told,) = woven.told()

    assert isinstance(told, RuntimePerformance)
    assert told.error == "ZeroDivisionError"


def test_coroutines_hand_on_their_sequence_and_generators_none(woven: Woven) -> None:
    """Between two steps of a generator others are called, who are not its."""
    woven.weave(Aspect(f"{NAME}.*"), Aspect(f"{NAME}.Table.*"))
    asyncio.run(later(UPDATES))
    assert len(sequences(woven.told())) == 1
    [*Table().steps()]

    assert len(sequences(woven.told())) == 2


def test_sampled_are_whole_sequences_in_their_part(woven: Woven) -> None:
    woven.weave(Aspect(f"{NAME}.*", sample=0.25), Aspect(f"{NAME}.Table.*", sample=0.25))
    for _ in range(2_000):
        whole(UPDATES)
    told = woven.told()

    assert 350 < len(sequences(told)) < 650
    assert len(told) == 3 * len(sequences(told))


def test_none_is_measured_where_none_is_sampled(woven: Woven) -> None:
    woven.weave(Aspect(f"{NAME}.first", sample=0))
    first(UPDATES)

    assert woven.told() == []


def test_what_is_not_sampled_is_counted_all_the_same_and_leaves_nothing_behind(
    woven: Woven,
) -> None:
    """Else what comes next in the thread would be a part of it."""
    both = Aspect(f"{NAME}.fails", measures=("runtime", "count"), sample=0)
    woven.weave(both, Aspect(f"{NAME}.whole", sample=0))
    with pytest.raises(ZeroDivisionError):
        fails()
    assert AROUND.get() is None
    whole(UPDATES)
    assert AROUND.get() is None
    (told,) = woven.told()

    assert isinstance(told, Calls)
    assert (told.calls, told.failed) == (1, 1)


def test_a_full_outbox_drops_and_counts(woven: Woven) -> None:
    """Whoever is woven waits for nothing."""
    woven.outbox.hold(10 * MOST_BYTES_EACH)
    woven.weave(Aspect(f"{NAME}.first"))
    for _ in range(25):
        first(UPDATES)

    assert woven.outbox.dropped == 15
    assert len(woven.told()) == 10


def test_no_measurement_takes_more_than_is_counted_for_it(woven: Woven) -> None:
    """With the longest sequence and the longest name of an error."""
    raised = type("E" * 300, (Exception,), {})
    woven.weave(Aspect(f"{NAME}.whole", measures=("runtime", "profile"), sequence="updates.0"))
    with pytest.raises(raised):
        whole([Raises("x" * 300, raised)])  # type: ignore[list-item]

    for each in woven.told():
        held = [each, *msgspec.structs.astuple(each)[1:]]
        assert sum(map(sys.getsizeof, held)) < MOST_BYTES_EACH


class Raises(str):
    """A long sequence, and an error for whoever asks for an offset."""

    def __new__(cls, text: str, _raised: type[Exception]) -> Raises:
        return super().__new__(cls, text)

    def __init__(self, _text: str, raised: type[Exception]) -> None:
        self._raised = raised

    @property
    def offset(self) -> int:
        raise self._raised


class Strange:
    """An id whose text cannot be made."""

    def __str__(self) -> str:
        raise ZeroDivisionError


def test_a_fault_of_ours_is_not_the_callers(woven: Woven) -> None:
    """It is a measurement less."""
    woven.weave(Aspect(f"{NAME}.first", sequence="updates.0"))

    assert first([Strange()]) == 1  # type: ignore[list-item]
    assert (woven.told(), woven.outbox.dropped) == ([], 1)


def test_whoever_publishes_is_not_measured(woven: Woven) -> None:
    woven.weave(Aspect(f"{NAME}.first"))
    with woven.outbox.quiet():
        first(UPDATES)

    assert woven.told() == []
