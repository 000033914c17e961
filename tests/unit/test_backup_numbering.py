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


def test_a_release_that_is_stored_is_the_first_record_of_the_new_log() -> None:
    """It is before progress there, so nobody waits for it; one that is not is waited for."""
    found = through(Tail(NUMBERS, {}), *(AcquireRecord(("so",), 1, at) for at in (0, 39, 40, 44)))

    assert [each.release_offset for each in found if isinstance(each, AcquireRecord)] == [
        0,
        0,
        6,
        10,
    ]


def test_what_crosses_borders_comes_from_places_of_the_new_log_and_before_it() -> None:
    """So what has come is known by its place, and what was sent on comes once."""
    text = msgspec.Raw(b'{"text":"border"}')
    updates = (BorderUpdate("so", "a", 5, (1,), text),)
    tail = Tail(NUMBERS, {})

    found = through(
        tail,
        BorderRecord(Source(1, 37, 2), 9, updates),
        BorderRecord(Source(0, 99), 9, updates, forwarded=(1, 30)),
        BeginRecord(Source(1, -50), 9, 8, ("r",), (), moved_from=1),
        EndRecord(Source(0, 104), 9, 8, ("r",), (), forwarded=(0, 101)),
    )

    assert found == [
        BorderRecord(Source(1, 3, 2), 9, updates),
        BorderRecord(Source(0, 0), 9, updates, forwarded=(1, -4)),
        BeginRecord(Source(1, -84), 9, 8, ("r",), (), moved_from=1),
        EndRecord(Source(0, 5), 9, 8, ("r",), (), forwarded=(0, 2)),
    ]
    assert tail.crossed_from == {0, 1}
    assert NUMBERS.crossing(write(BorderRecord(Source(1, 37), 9, updates))) == write(
        BorderRecord(Source(1, 3), 9, updates)
    )


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
