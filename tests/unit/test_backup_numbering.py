"""Places of the log that is gone become places of the new one."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as some

from servioticy.backup.numbering import NOTHING, LogNumbers, Tail, TopicNumbers, cursor
from servioticy.backup.wanted import Wanted, kept
from servioticy.domain.model import StreamRef
from servioticy.domain.records import (
    AcquireRecord,
    BeginRecord,
    BorderRecord,
    BorderUpdate,
    DefinitionRecord,
    EmittedRecord,
    EndRecord,
    LogRecord,
    Source,
    UpdateRecord,
    read_emitted,
    read_record,
    write,
)
from servioticy.messaging.stretches import Record
from servioticy.ports.cursors import StoredCursor

NUMBERS = LogNumbers({0: 100, 1: 40}, {0: 1, 1: 6})


def update(at: int, forwarded: tuple[int, int] | None = None) -> UpdateRecord:
    return UpdateRecord("so", "a", at, msgspec.Raw(b'{"text":"acquire"}'), forwarded)


def emitted(place: tuple[int, ...] | None) -> bytes:
    return write(EmittedRecord("so", "a", 1, 1, 5, msgspec.Raw(b"{}"), place))


def through(tail: Tail, *records: LogRecord) -> list[LogRecord]:
    return [read_record(tail.record(write(each))) for each in records]


def test_most_records_stay_as_they_are() -> None:
    for value in (
        write(update(1)),
        write(DefinitionRecord("so", 2, 7)),
        b"no JSON",
        b'{"kind":"acquire"',
        b'{"kind":"new","forwarded":1}',
        b"",
    ):
        assert Tail(NUMBERS, {}).record(value) == value


def test_what_was_forwarded_comes_once_whatever_was_repeated() -> None:
    """What its first partition forwards again is told by its new place; else it has none."""
    found = through(
        Tail(NUMBERS, {1: 39}),
        *(update(n, (1, n)) for n in (37, 38, 39, 39, 40, 41, 40)),
        update(9, (0, 99)),
    )

    assert found == [
        read_record(NOTHING),
        read_record(NOTHING),
        update(39),
        read_record(NOTHING),
        update(40, (1, 6)),
        update(41, (1, 7)),
        read_record(NOTHING),
        update(9),
    ]


WITHIN = LogNumbers({0: 6, 1: 3}, {0: 1, 1: 1}, {0: 2, 1: 0})
"""Progress of partition 0 stands within its record 6, of which the tree of tenant 1 is stored."""


def border(source: Source, forwarded: tuple[int, int] | None = None, of: int = 1) -> BorderRecord:
    updates = (BorderUpdate("so", "a", 5, (1,), msgspec.Raw(b'{"v":5}')),)
    return BorderRecord(source, of, updates, (), forwarded)


def test_what_crossed_a_border_names_a_place_below_zero_if_that_is_stored() -> None:
    """Else it is made again, and is another one then, perhaps."""
    made = [
        (Source(0, 4, 2), 9, Source(0, -3, 2)),
        (Source(0, 6, 1), 1, Source(0, -1, 1)),
        (Source(0, 6), 2, None),
        (Source(0, 7), 1, None),
        (Source(1, 2), 9, Source(1, -1)),
        (Source(1, 3), 1, None),
        (Source(0, -8), 1, Source(0, -15)),
    ]
    for before, tenant, after in made:
        begin = BeginRecord(before, tenant, 3, ("r",), ())
        end = EndRecord(before, tenant, 3, ("r",), (("so", "a"),), 1)
        for record in (border(before, of=tenant), begin, end):
            expected = read_record(NOTHING)
            if after is not None:
                expected = msgspec.structs.replace(record, source=after)
            assert through(Tail(WITHIN, {}), record) == [expected]


def test_what_crossed_and_was_sent_on_comes_once() -> None:
    """Its place is below zero where nobody sends it on again; it is looked at for repeats no more.

    The record within which progress stands is looked at once more, and what it feeds elsewhere
    sent on once more.
    """
    found = through(
        Tail(WITHIN, {0: 4}), *(border(Source(1, at), (0, at + 3)) for at in (0, 1, 2, 1, 2))
    )
    tail = Tail(WITHIN, {})
    again = through(tail, *(border(Source(1, 0), (0, at)) for at in (5, 6, 7)))

    nothing = read_record(NOTHING)
    assert found == [
        nothing,
        border(Source(1, -2), (0, -2)),
        border(Source(1, -1), (0, -1)),
        nothing,
        nothing,
    ]
    assert [each.forwarded for each in again if isinstance(each, BorderRecord)] == [
        (0, -1),
        (0, 1),
        (0, 2),
    ]


def test_a_release_that_is_stored_is_the_first_record_of_the_new_log() -> None:
    """It is before progress there, so nobody waits for it; one that is not is waited for."""
    found = through(Tail(NUMBERS, {}), *(AcquireRecord(("so",), 1, at) for at in (0, 39, 40, 44)))

    assert [each.release_offset for each in found if isinstance(each, AcquireRecord)] == [
        0,
        0,
        6,
        10,
    ]


def test_places_of_what_was_emitted_count_from_progress_and_then_from_the_new_log() -> None:
    for place, expected in (
        ((97, 0, 0), (-2, 0, 0)),
        (None, None),
        ((-5, 1, 1, 3), (-104, 1, 1, 3)),
    ):
        found = kept(Record(9, b"so/a", emitted(place)), 100)
        assert found is not None
        assert read_emitted(NUMBERS.emitted(0, found.value)).place == expected
        assert (found.offset, found.key) == (9, b"so/a")


def test_what_is_computed_again_and_what_nobody_can_read_is_not_kept() -> None:
    for value in (emitted((100, 0, 0)), emitted((177, 2, 2, 1, 1)), b"no JSON", b""):
        assert kept(Record(9, b"so/a", value), 100) is None


def test_a_cursor_stands_before_the_same_records() -> None:
    topic = {0: TopicNumbers([10, 14, 20])}
    for offset in (10, 12, 13, 19):
        topic[0].note(offset)
    topic[0].end()
    stream = StreamRef("so", "a")
    stored = StoredCursor({0: 14}, {stream: 5}, {0: 90, 1: 40}, {0: 20}, 7, frozenset({8}))

    assert cursor(stored, NUMBERS, topic, {0: 3}) == StoredCursor(
        {0: 6}, {stream: 5}, {0: -9, 1: 6}, {0: 7}, 7, frozenset({8})
    )


@given(some.sets(some.integers(0, 60)), some.lists(some.integers(0, 60), min_size=1))
def test_as_many_records_are_before_a_place_as_were_kept(
    kept: set[int], places: list[int]
) -> None:
    numbers = TopicNumbers(places)
    for offset in sorted(kept):
        numbers.note(offset)
    numbers.end()

    assert [numbers.number(each) for each in places] == [
        sum(offset < each for offset in kept) for each in places
    ]


def test_near_the_end_all_is_wanted_and_before_it_of_some_streams_only() -> None:
    wanted = Wanted({0: 100}, {b"so/a": {0: 50}}, {0: 50})
    asked = [(100, b"x"), (99, b"x"), (99, b"so/a"), (50, b"so/a"), (49, b"so/a"), (60, None)]

    assert [wanted.has(0, Record(at, key, b"")) for at, key in asked] == [
        *(True, False, True, True, False, False)
    ]


def test_where_too_many_streams_are_behind_all_is_wanted_from_the_first_of_them() -> None:
    wanted = Wanted({0: 100}, None, {0: 50})

    assert [wanted.has(0, Record(at, b"x", b"")) for at in (49, 50, 100)] == [False, True, True]
