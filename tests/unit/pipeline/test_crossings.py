"""What of a batch goes over borders: a record for each tree, to where its streams are read."""

from __future__ import annotations

import pytest
from engine_builders import document

from pipeline.growth import NewRow
from pipeline.stages import rows
from pipeline.stages.rows import MAX_CROSSING_BYTES
from servioticy.domain.borders import BORDER
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import InputRef, LastUpdate, StreamRef
from servioticy.domain.records import BorderRecord, BorderUpdate, Source, read_record
from servioticy.domain.topics import MAX_MESSAGE_BYTES, largest_update
from servioticy.ports.borders import Crossing, StoredInput
from servioticy.ports.put_off import TreeKey


def a_stream(name: str, *read_in: int) -> KnownStream:
    return KnownStream(StreamRef("x", name), 1, 1, 1, None, read_in=read_in)


def a_row(
    stream: KnownStream, offset: int, *path: int, tree: int = 0, text: bytes = b"{}"
) -> NewRow:
    return stream, 7, text, TreeKey(offset, tree), len(path), path


def updates_of(crossing: Crossing) -> list[BorderUpdate]:
    record = read_record(crossing.record)
    assert isinstance(record, BorderRecord)
    return list(record.updates)


def test_a_tree_is_one_record_for_all_partitions_in_which_it_is_read() -> None:
    """Streams that nobody reads are not in it, nor are those where no other stream is read."""
    a, b, c = a_stream("a", 2, 0), a_stream("b", 1), a_stream("c")
    made = [a_row(a, 5), a_row(c, 5, 0), a_row(b, 5, 0, 3), a_row(c, 6), a_row(a, 7, 1, tree=4)]

    first, second = rows.crossings(made, 3)

    assert (first.offset, first.tree, first.number, first.partitions) == (5, 0, 0, (0, 1, 2))
    record = read_record(first.record)
    assert isinstance(record, BorderRecord)
    assert (record.source, record.provider) == (Source(3, 5, 0), 1)
    assert [(each.origin, each.path) for each in record.updates] == [
        (a.ref, ()),
        (b.ref, (0, 3)),
    ]
    assert bytes(record.updates[0].update) == b"{}"
    assert (record.readers, record.forwarded) == ((), None)
    assert (second.offset, second.tree, second.partitions) == (7, 4, (0, 2))
    assert updates_of(second)[0].path == (1,)


def test_trees_of_one_record_are_told_apart() -> None:
    """Each has its parts; the source of both is the record: parts of one offset differ."""
    a = a_stream("a", 1)
    found = rows.crossings([a_row(a, 5, 0, tree=4), a_row(a, 5, 0, tree=9)], 3)

    assert [(each.tree, each.number) for each in found] == [(4, 0), (9, 0)]


def test_what_is_too_much_for_a_record_is_cut_between_its_updates() -> None:
    """Each part goes to where something of it is read."""
    a, b = a_stream("a", 0), a_stream("b", 1)
    text = b'{"v":"%s"}' % (b"x" * (MAX_CROSSING_BYTES // 3))
    made = [a_row(stream, 5, n, text=text) for n, stream in enumerate([a, a, b, b, b])]

    found = rows.crossings(made, 3)

    assert [len(updates_of(each)) for each in found] == [2, 2, 1]
    assert [each.partitions for each in found] == [(0,), (1,), (1,)]
    records = [read_record(each.record) for each in found]
    assert [each.source for each in records] == [Source(3, 5, n) for n in range(3)]  # type: ignore[union-attr]
    assert [each.number for each in found] == [0, 1, 2]
    assert [each.path for some in found for each in updates_of(some)] == [(n,) for n in range(5)]


@pytest.mark.parametrize("name", ["s", "\U0001f30d" * 200, "\x01" * 200], ids=["s", "🌍", "␁"])
@pytest.mark.parametrize("steps", [1, 60])
def test_however_small_its_updates_are_a_record_can_be_sent(name: str, steps: int) -> None:
    stream, path = a_stream(name, 0), (BORDER + 123,) * steps
    made = [a_row(stream, 5, *path, text=document(n)) for n in range(20_000)]

    found = rows.crossings(made, 3)

    assert max(len(each.record) for each in found) <= MAX_CROSSING_BYTES + 1000
    assert sum(len(updates_of(each)) for each in found) == len(made)


def test_the_largest_update_can_be_sent() -> None:
    text = b'{"v":"%s"}' % (b"x" * (largest_update(10**9) - 8))
    (found,) = rows.crossings([a_row(a_stream("\x01" * 200, 0), 5, text=text)], 3)

    assert len(found.record) <= MAX_MESSAGE_BYTES


def test_of_inputs_those_are_stored_that_are_kept() -> None:
    source = StreamRef("x", "a")
    kept = KnownStream(InputRef(source, 3), 1, 0, 0, None, keeper=(2, "r"))
    other = KnownStream(InputRef(source, 4), 1, 0, 0, None)

    found = rows.inputs({kept: LastUpdate(7, b"{}"), other: LastUpdate(7, b"{}")})

    assert found == [StoredInput(2, "r", source, 7, b"{}")]
    assert type(found[0].source) is StreamRef
