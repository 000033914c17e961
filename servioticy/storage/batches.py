"""What a batch is to Postgres: the parts of one message, each for one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any

from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.storage.arrays import blobs, columns, numbers, texts
from servioticy.storage.database import Copied, Prepared
from servioticy.storage.kept_entries import kept_parts
from servioticy.storage.queries import queries

_SQL = queries("partition")

_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"
_KEYS = ("tenants", "streams", "timestamps")
_ROW = Struct("!hiqiqiqiiiiiqiii").pack
"""Eight fields, each after its length; the document itself follows.

With lengths nothing has to be escaped, so no document can be taken for more than one field.
"""


def fence(batch: Batch) -> Prepared:
    """What refuses a batch that does not begin where progress stands; else it moves that."""
    return _prepared(
        "fence",
        partition=batch.partition,
        first_offset=batch.first_offset,
        first_tree=batch.first_tree,
        next_offset=batch.next_offset,
        next_tree=batch.next_tree,
        emitted_offset=batch.emitted_offset,
    )


def batch_parts(batch: Batch) -> list[Prepared | Copied]:
    """Of each table what the batch has for it."""
    return [
        *_updates(batch),
        *_states(batch),
        *kept_parts(batch),
        *_verdicts(batch),
        *_forwarded(batch),
    ]


def superseded(updates: Sequence[StoredUpdate]) -> list[StoredUpdate]:
    """Those that are no rows: a later one of the same stream and timestamp displaces them, or they
    take back what is there."""
    if all(each.is_new for each in updates):
        return []
    last = _last_of_each(updates)
    return [
        each
        for each in updates
        if (each.is_sent if each.takes_back else last[each.stream_id, each.timestamp] is not each)
    ]


def update_columns(updates: Sequence[StoredUpdate]) -> dict[str, str]:
    """Updates as arrays."""
    whole = columns(updates, len(StoredUpdate._fields))
    tenants, streams, timestamps, documents, versions, offsets, positions, *_ = whole
    return {
        "tenants": numbers(tenants),
        "streams": numbers(streams),
        "timestamps": numbers(timestamps),
        "documents": texts(documents),
        "versions": numbers(versions),
        "offsets": numbers(offsets),
        "positions": numbers(positions),
    }


def copied(updates: Sequence[StoredUpdate], partition: int) -> bytes:
    """Rows in Postgres' binary format."""
    pieces = [_HEADER]
    add = pieces.append
    for update in updates:
        tenant, stream, at, document, version, offset, place, *_ = update
        size = len(document)
        add(
            _ROW(
                8, 8, tenant, 8, stream, 8, at, 4, version, 4, partition, 8, offset, 4, place, size
            )
        )
        add(document)
    add(_TRAILER)
    return b"".join(pieces)


def _updates(batch: Batch) -> Iterator[Prepared | Copied]:
    """A stream and timestamp met twice is stored as it was last: not at all, if it was taken back
    then."""
    new: Sequence[StoredUpdate] = batch.updates
    others: Sequence[StoredUpdate] = ()
    gone: Sequence[StoredUpdate] = ()
    if not all(each.is_new for each in new):
        last = _last_of_each(batch.updates).values()
        new = [each for each in last if each.is_new]
        others = [each for each in last if not (each.is_new or each.takes_back)]
        gone = [each for each in last if each.takes_back]
    if new:
        yield Copied(_SQL["copy_updates"], copied(new, batch.partition))
    if others:
        yield _prepared("store_updates", partition=batch.partition, **update_columns(others))
    ending = [each for each in (*new, *others) if each.ends_taken_back]
    if ending:
        keys = update_columns(ending)
        yield _prepared("end_taken_back", **{key: keys[key] for key in _KEYS})
    if gone:
        yield from _taken_back(gone)
    if others or gone:
        late = update_columns([*others, *gone])
        yield _prepared("note_late", streams=late["streams"])
        yield _prepared("drop_blocks", streams=late["streams"], timestamps=late["timestamps"])


def _taken_back(gone: Sequence[StoredUpdate]) -> Iterator[Prepared]:
    """Their rows go; of each stream the newest is remembered, where nothing newer is there."""
    every = update_columns(gone)
    yield _prepared("take_back", **{key: every[key] for key in _KEYS})
    newest: dict[int, StoredUpdate] = {}
    for each in gone:
        before = newest.get(each.stream_id)
        if before is None or each.timestamp > before.timestamp:
            newest[each.stream_id] = each
    some = update_columns([*newest.values()])
    yield _prepared("keep_taken_back", **{key: some[key] for key in (*_KEYS, "documents")})


def _last_of_each(updates: Sequence[StoredUpdate]) -> dict[tuple[int, int], StoredUpdate]:
    return {(each.stream_id, each.timestamp): each for each in updates}


def _states(batch: Batch) -> Iterator[Prepared]:
    if batch.states:
        tenants, streams, states = columns(batch.states, 3)
        yield _prepared(
            "store_states",
            tenants=numbers(tenants),
            streams=numbers(streams),
            states=blobs(states),
        )


def _verdicts(batch: Batch) -> Iterator[Prepared]:
    if batch.verdicts:
        tenants, streams, verdicts, counts, lasts = columns(batch.verdicts, 5)
        yield _prepared(
            "count_verdicts",
            tenants=numbers(tenants),
            streams=numbers(streams),
            verdicts=texts([each.encode() for each in verdicts]),
            counts=numbers(counts),
            lasts=texts(lasts),
        )


def _forwarded(batch: Batch) -> Iterator[Prepared]:
    if batch.forwarded:
        origins, offsets = numbers(batch.forwarded), numbers(batch.forwarded.values())
        values = {"partition": batch.partition, "from": origins, "next": offsets}
        yield _prepared("note_forwarded", **values)


def _prepared(name: str, **values: Any) -> Prepared:
    return Prepared(name, _SQL[name], values)
