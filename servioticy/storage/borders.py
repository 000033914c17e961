"""What crosses borders between tenants, in Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from servioticy.domain.model import InputFromOutside, LastUpdate, StreamRef
from servioticy.ports.batches import Batch
from servioticy.ports.borders import Channel, Crossing, FedReader, OutsideReader
from servioticy.ports.effects import Activate, BeginInputs, EndInputs, Read
from servioticy.storage.arrays import blobs, columns, numbers, texts
from servioticy.storage.database import Database, Prepared
from servioticy.storage.queries import queries

_SQL = queries("borders")

LATEST = 2**63 - 1
"""Later than any change."""


def border_parts(batch: Batch) -> list[Prepared]:
    """Of each of these tables what the batch has for it."""
    found = []
    if batch.inputs:
        tenants, readers, refs, timestamps, documents = columns(batch.inputs, 5)
        found.append(
            _prepared(
                "store_inputs",
                readers=_names(readers),
                tenants=numbers(tenants),
                timestamps=numbers(timestamps),
                documents=texts(documents),
                **_refs(refs),
            )
        )
    if batch.marks:
        origins, refs = columns(list(batch.marks), 2)
        offsets, parts = columns(list(batch.marks.values()), 2)
        found.append(
            _prepared(
                "store_marks",
                partition=batch.partition,
                offsets=numbers(offsets),
                parts=numbers(parts),
                **{"from": numbers(origins), **_refs(refs)},
            )
        )
    if batch.outside:
        readers, tenants, refs, _partitions, _changes, opened = columns(batch.outside, 6)
        found.append(
            _prepared(
                "store_outside",
                readers=_names(readers),
                tenants=numbers(tenants),
                opened=_flags(opened),
                **_refs(refs),
            )
        )
    if batch.crossings:
        offsets, trees, order, partitions, records = columns(batch.crossings, 5)
        found.append(
            _prepared(
                "store_crossings",
                partition=batch.partition,
                offsets=numbers(offsets),
                trees=numbers(trees),
                numbers=numbers(order),
                partitions=_names(map(numbers, partitions)),
                records=blobs(records),
            )
        )
    return found


def forgetting_crossings(batch: Batch) -> Prepared:
    """What removes the crossings that are where they were sent, but for late ones."""
    values = {"partition": batch.partition, "emitted_offset": batch.emitted_offset}
    return _prepared("forget_crossings", **values)


def forget_late_crossings(database: Database, batch: Batch) -> None:
    """Remove those of records that had been put off: all that came of them is emitted."""
    offsets, trees = columns(batch.emitted_late, 2)
    values = {"offsets": numbers(offsets), "trees": numbers(trees)}
    database.rows(_SQL["forget_late_crossings"], values | {"partition": batch.partition})


def last_crossing(database: Database, partition: int) -> int | None:
    """Return up to which offset there may be crossings; None where there are none."""
    (found,) = database.rows(_SQL["last_crossing"], {"partition": partition})[0]
    return None if found is None else int(found)


def forget_unread_marks(database: Database, partition: int) -> None:
    """Remove marks of streams that nobody reads in the partition any more."""
    database.rows(_SQL["forget_unread_marks"], {"partition": partition})


def name_inputs(database: Database, effect: Activate, tenant: int, partition: int) -> None:
    """Make what a version's groups name of other tenants its inputs from outside."""
    values = _refs(effect.members) | {"service_object": effect.service_object}
    _forget_inputs(database, values, tenant, partition)
    if effect.members:
        kept = set(effect.kept)
        values["kept"] = _flags(each in kept for each in effect.members)
        values["change"] = effect.change
        database.rows(_SQL["name_inputs"], values)


def forget_inputs(database: Database, service_object: str, tenant: int, partition: int) -> None:
    """Forget what a Service Object reads of others, and what others read of it."""
    values = _refs(()) | {"service_object": service_object}
    _forget_inputs(database, values, tenant, partition)
    database.rows(_SQL["forget_readers"], values)


def _forget_inputs(
    database: Database, values: Mapping[str, Any], tenant: int, partition: int
) -> None:
    rows = database.rows(_SQL["forget_inputs"], values)
    if not rows:
        return
    _forget_marks(database, [StreamRef(*row[:2]) for row in rows], partition)
    if any(has_awaited for _, _, has_awaited in rows):
        _free_held(database, tenant, partition)


def read(database: Database, effect: Read, partition: int) -> None:
    """Note what a Service Object of another tenant reads here from now on."""
    values: dict[str, Any] = effect._asdict() | {"partition": partition}
    if effect.rows:
        _, _, refs, partitions, _, opened = columns(effect.rows, 6)
        values |= _refs(refs)
        values |= {"partitions": numbers(partitions), "opened": _flags(opened)}
        database.rows(_SQL["read"], values)
    if effect.ends:
        database.rows(_SQL["read_no_more"], values)


def begin(database: Database, effect: BeginInputs, partition: int) -> None:
    """Let these readers read from now on, those that name the streams, and feed them here."""
    refs, timestamps, documents = columns(effect.streams, 3)
    values = _values(effect, refs, partition) | {
        "provider": effect.provider,
        "changes": numbers(effect.changes or [LATEST] * len(effect.readers)),
        "moved_from": effect.moved_from,
        "timestamps": list(timestamps),
        "documents": [None if each is None else each.decode() for each in documents],
    }
    database.rows(_SQL["hold_inputs"], values)
    if effect.forwarded:
        database.rows(_SQL["begin_forwarded"], values)
    elif effect.moved_from is None:
        database.rows(_SQL["begin_inputs"], values)
    else:
        database.rows(_SQL["begin_moved"], values)


def end(database: Database, effect: EndInputs, partition: int) -> None:
    """Let these readers read no more; or end what they are fed here, or what they await."""
    values = _values(effect, effect.streams, partition)
    database.rows(_SQL["hold_inputs"], values)
    if effect.arrived:
        database.rows(_SQL["end_arrived"], values)
        _free_held(database, effect.tenant, partition)
    else:
        database.rows(_SQL["end_moved" if effect.moved else "end_inputs"], values)
    _forget_marks(database, effect.streams, partition)


def closes(database: Database, effect: EndInputs) -> dict[str, list[StreamRef]]:
    """Return of each reader what it may read until this, which ends it."""
    found: dict[str, list[StreamRef]] = {}
    values = _values(effect, effect.streams, 0)
    for reader, source, stream in database.rows(_SQL["closes"], values):
        found.setdefault(reader, []).append(StreamRef(source, stream))
    return found


def inputs(
    database: Database, ids: Sequence[str]
) -> Mapping[str, dict[StreamRef, InputFromOutside]]:
    """Return what these Service Objects read of others, of those that do."""
    found: dict[str, dict[StreamRef, InputFromOutside]] = {}
    for reader, source, stream, *known in database.rows(_SQL["inputs"], {"ids": list(ids)}):
        found.setdefault(reader, {})[StreamRef(source, stream)] = InputFromOutside(*known)
    return found


def read_in(database: Database, ids: Sequence[str]) -> Mapping[str, dict[str, tuple[int, ...]]]:
    """Return in which partitions others may read streams of these, of those where they do."""
    found: dict[str, dict[str, tuple[int, ...]]] = {}
    rows = database.rows(_SQL["read_in"], {"ids": list(ids)})
    for (source, stream), places in groupby(rows, key=itemgetter(0, 1)):
        found.setdefault(source, {})[stream] = tuple(place for _, _, place in places)
    return found


def channels(
    database: Database, partition: int, streams: Iterable[StreamRef]
) -> dict[StreamRef, Channel]:
    """Return who is fed in the partition with these streams, and how far."""
    values = _refs(dict.fromkeys(streams)) | {"partition": partition}
    marks: dict[StreamRef, dict[int, tuple[int, int]]] = {}
    readers: dict[StreamRef, list[FedReader]] = {}
    for source, stream, origin, offset, part in database.rows(_SQL["marks"], values):
        marks.setdefault(StreamRef(source, stream), {})[origin] = offset, part
    for source, stream, *reader in database.rows(_SQL["fed"], values):
        readers.setdefault(StreamRef(source, stream), []).append(FedReader(*reader))
    return {
        ref: Channel(marks.get(ref, {}), tuple(readers.get(ref, ()))) for ref in marks | readers
    }


def begun_behind(
    database: Database,
    readers: Sequence[str],
    streams: Sequence[StreamRef],
    place: tuple[int, int],
) -> set[tuple[str, StreamRef]]:
    """Return which of these readers have begun with which of these streams behind a place."""
    values = _refs(streams) | {"readers": _names(readers), "from": place[0], "offset": place[1]}
    rows = database.rows(_SQL["begun_behind"], values)
    return {(reader, StreamRef(source, stream)) for reader, source, stream in rows}


def awaiting(database: Database, partition: int) -> dict[int, int]:
    """Return who awaits here what another partition sends on, and how much is held of each."""
    return dict(database.rows(_SQL["awaiting"], {"partition": partition}))


def last_inputs(
    database: Database, wanted: Iterable[tuple[str, StreamRef]]
) -> dict[tuple[str, StreamRef], LastUpdate]:
    """Return what these readers know as the last updates of these streams, if anything."""
    readers, refs = columns(list(wanted), 2)
    rows = database.rows(_SQL["last_inputs"], _refs(refs) | {"readers": _names(readers)})
    return {
        (reader, StreamRef(source, stream)): LastUpdate(at, document.encode())
        for reader, source, stream, at, document in rows
    }


def outside_readers(database: Database, service_object: str) -> list[OutsideReader]:
    """Return who of other tenants reads its streams, in order of creation."""
    rows = database.rows(_SQL["outside_readers"], {"service_object": service_object})
    return [_outside_reader(*row) for row in rows]


def reading(database: Database, reader: str, provider: int, partition: int) -> list[OutsideReader]:
    """Return what a Service Object reads of a provider's that is computed in a partition."""
    values = {"reader": reader, "provider": provider, "partition": partition}
    return [_outside_reader(*row) for row in database.rows(_SQL["reading"], values)]


def crossings(database: Database, partition: int) -> list[Crossing]:
    """Return what is not certain to be where it was sent, in the order it was made."""
    rows = database.rows(_SQL["crossings"], {"partition": partition})
    return [
        Crossing(offset, tree, number, tuple(partitions), bytes(record))
        for offset, tree, number, partitions, record in rows
    ]


def _outside_reader(
    reader: str, tenant: int, source: str, stream: str, partition: int, change: int, is_open: bool
) -> OutsideReader:
    return OutsideReader(reader, tenant, StreamRef(source, stream), partition, change, is_open)


def _forget_marks(database: Database, streams: Iterable[StreamRef], partition: int) -> None:
    database.rows(_SQL["forget_marks"], _refs(streams) | {"partition": partition})


def _free_held(database: Database, tenant: int, partition: int) -> None:
    database.rows(_SQL["free_held"], {"tenant": tenant, "partition": partition})


def _values(
    effect: BeginInputs | EndInputs, refs: Iterable[StreamRef], partition: int
) -> dict[str, Any]:
    origin, offset = effect.source
    return _refs(refs) | {
        "tenant": effect.tenant,
        "readers": _names(effect.readers),
        "partition": partition,
        "from": origin,
        "offset": offset,
    }


def _refs(refs: Iterable[StreamRef]) -> dict[str, Any]:
    sources, streams = columns([tuple(each) for each in refs], 2)
    return {"sources": _names(sources), "streams": _names(streams)}


def _names(values: Iterable[str]) -> str:
    return texts([each.encode() for each in values])


def _flags(values: Iterable[bool]) -> str:
    return "{" + ",".join("t" if each else "f" for each in values) + "}"


def _prepared(name: str, **values: Any) -> Prepared:
    return Prepared(name, _SQL[name], values)
