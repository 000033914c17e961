"""What a provider tells those who read from outside: few records, each of which fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import pytest

from pipeline.changes import outside
from pipeline.changes.outside import MAX_TOLD_READERS, READERS_OF_LARGE, Tidings
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.records import BeginRecord, EndRecord, Source, read_record
from servioticy.domain.topics import MAX_MESSAGE_BYTES, largest_update
from servioticy.ports.borders import OutsideReader

A, B = StreamRef("x", "a"), StreamRef("x", "b")


def a_reader(id_: str, *sources: StreamRef, tenant: int = 2, partition: int = 1):
    return [OutsideReader(id_, tenant, each, partition, 1, is_open=True) for each in sources]


def lasts_of(
    lasts: Mapping[StreamRef, LastUpdate],
) -> outside.Lasts:
    def found(streams: Iterable[StreamRef]) -> Mapping[StreamRef, LastUpdate | None]:
        return {each: lasts.get(each) for each in streams}

    return found


NOTHING = lasts_of({})


def begun(tidings: Tidings) -> list[tuple[int, tuple[str, ...], list[str]]]:
    """Of each record the partition, the readers and the streams."""
    found = []
    for each in tidings.crossings:
        record = read_record(each.record)
        assert isinstance(record, BeginRecord)
        (partition,) = each.partitions
        found.append((partition, record.readers, [told.stream for told in record.streams]))
    return found


def test_those_that_read_the_same_are_told_together() -> None:
    """Of one tenant in one partition."""
    tidings = Tidings(0, 1, 7)
    readers = [
        *a_reader("r1", A, B),
        *a_reader("r2", A, B),
        *a_reader("r3", A),
        *a_reader("r4", A, B, tenant=3),
        *a_reader("r5", A, B, partition=0),
    ]

    tidings.begin(readers, NOTHING)

    assert begun(tidings) == [
        (1, ("r1", "r2"), ["a", "b"]),
        (1, ("r3",), ["a"]),
        (1, ("r4",), ["a", "b"]),
        (0, ("r5",), ["a", "b"]),
    ]
    assert [(each.offset, each.tree) for each in tidings.crossings] == [(7, 0)] * 4


def test_what_is_told_has_the_last_updates_and_its_place() -> None:
    tidings = Tidings(5, 1, 7)
    tidings.begin(a_reader("r", A, B), lasts_of({B: LastUpdate(9, b'{"v":1}', b"state")}))

    record = read_record(tidings.crossings[0].record)

    assert isinstance(record, BeginRecord)
    assert (record.source, record.provider, record.tenant) == (Source(5, 7), 1, 2)
    assert [(each.ref, each.timestamp) for each in record.streams] == [(A, None), (B, 9)]
    assert bytes(record.streams[1].update) == b'{"v":1}'
    assert (record.moved_from, record.forwarded) == (None, None)


def test_who_has_moved_knows_what_it_knew() -> None:
    tidings = Tidings(0, 1, 7)
    tidings.begin(a_reader("r", A), lasts_of({A: LastUpdate(9, b"{}")}), moved_from=4)
    tidings.end(a_reader("r", A, partition=4), moved_to=1)

    first, second = (read_record(each.record) for each in tidings.crossings)

    assert isinstance(first, BeginRecord)
    assert first.moved_from == 4
    assert first.streams[0].timestamp is None
    assert second == EndRecord(Source(0, 7), 1, 2, ("r",), (("x", "a"),), 1)
    assert [(each.partitions, each.number) for each in tidings.crossings] == [((1,), 0), ((4,), 1)]


def test_many_readers_are_told_in_several_records() -> None:
    tidings = Tidings(0, 1, 7)
    names = [f"r{n}" for n in range(MAX_TOLD_READERS + 1)]
    some = [each for name in names for each in a_reader(name, A)]
    tidings.begin(some, NOTHING)
    tidings.end(some)

    records = [read_record(each.record) for each in tidings.crossings]
    assert [len(each.readers) for each in records] == [MAX_TOLD_READERS, 1] * 2  # type: ignore[union-attr]
    assert len({each.number for each in tidings.crossings}) == 4


@pytest.mark.parametrize("name", ["s", "\x01" * 200], ids=["short", "escaped"])
def test_last_updates_that_do_not_fit_together_come_in_several_records(name: str) -> None:
    refs = [StreamRef("x", f"{name}{n:03}"[-200:]) for n in range(300)]
    tidings = Tidings(0, 1, 7)
    text = b'{"v":"%s"}' % (b"x" * 10_000)
    tidings.begin(a_reader("r", *refs), lasts_of({each: LastUpdate(1, text) for each in refs}))

    records = [read_record(each.record) for each in tidings.crossings]
    told = [each.ref for record in records for each in record.streams]  # type: ignore[union-attr]
    assert told == refs
    assert 3 <= len(records) <= 5
    assert all(len(each.record) < 1_000_000 for each in tidings.crossings)


def test_the_largest_update_fits_whoever_reads_it() -> None:
    text = b'{"v":"%s"}' % (b"x" * (largest_update(10**9) - 8))
    names = [f"a-long-id-of-a-service-object-{n:06}" for n in range(MAX_TOLD_READERS)]
    some = [each for name in names for each in a_reader(name, A, B)]
    tidings = Tidings(0, 1, 7)
    tidings.begin(some, lasts_of({A: LastUpdate(1, text), B: LastUpdate(1, b"{}")}))

    assert max(len(each.record) for each in tidings.crossings) <= MAX_MESSAGE_BYTES
    told = [msgspec.json.decode(each.record, type=BeginRecord) for each in tidings.crossings]
    large = [each for each in told if each.streams[0].ref == A]
    assert [name for each in large for name in each.readers] == names
    assert {len(each.readers) for each in large} == {READERS_OF_LARGE}
    (small,) = (each for each in told if each.streams[0].ref == B)
    assert list(small.readers) == names
