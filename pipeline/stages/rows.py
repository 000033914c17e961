"""What a batch is outside: rows of updates, states and verdicts, and records for subscribers."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import cast

import msgspec
import orjson

from pipeline.growth import KeptEntry, NewRow, Verdict
from servioticy.domain.borders import channel
from servioticy.domain.emissions import Emission, placed
from servioticy.domain.known_streams import KnownStream, is_passing, takes_back
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.records import BorderRecord, BorderUpdate, Source, write
from servioticy.ports.batches import StoredState, StoredUpdate, StoredVerdict
from servioticy.ports.borders import Crossing, StoredInput
from servioticy.ports.kept_entries import StoredEntry
from servioticy.ports.put_off import TreeKey

MAX_CROSSING_BYTES = 900_000
"""Of what crosses a border in one record, where it is more than one update."""

STEP_BYTES = 16
"""Of a step of a path there, at most."""

MAX_INPUTS_BYTES = 2048
"""Of the inputs that a stored verdict tells: a composite may have a thousand."""

ALWAYS_FIT = 2
"""So many inputs do, whatever their names: 200 characters, four bytes each at most."""

_BY_STREAM = attrgetter("stream_id", "verdict")
_stored = cast(Callable[..., StoredVerdict], tuple.__new__)
"""A third of what it takes to call the class."""


def updates(new: Iterable[NewRow], repeating: Container[KnownStream] = ()) -> list[StoredUpdate]:
    """The history of new updates, which come in the serial order.

    Only streams that are `repeating` may have updates of these timestamps already. What takes back
    a result is no row, so it is not stored as a new one.
    """
    return [
        StoredUpdate(
            stream.tenant,
            stream.stream_id,
            timestamp,
            document,
            stream.version,
            key.offset,
            position,
            stream not in repeating and not back,
            key.tree,
            back,
            stream.revises and not back,
        )
        for stream, timestamp, document, key, position, path in new
        if not is_passing(stream, document, path)
        for back in (stream.revises and takes_back(stream, document, path),)
    ]


def taken_back(gone: Iterable[NewRow]) -> list[StoredUpdate]:
    """What goes from the history and of which subscribers are sent nothing."""
    rows_ = [(*row[:5], ()) for row in gone]  # whatever their last update says of itself
    return [
        each._replace(is_new=False, takes_back=True, ends_taken_back=False, is_sent=False)
        for each in updates(rows_)
    ]


def emissions(
    new: Iterable[NewRow], traces: Mapping[TreeKey, str] = MappingProxyType({})
) -> list[Emission]:
    """Return what subscribers are sent of new updates, with the trace contexts of their trees."""
    if traces:
        return [
            placed(stream.head, timestamp, document, key.offset, path, traces.get(key, ""))
            for stream, timestamp, document, key, _position, path in new
        ]
    return [
        placed(stream.head, timestamp, document, key.offset, path)
        for stream, timestamp, document, key, _position, path in new
    ]


def crossings(
    new: Iterable[NewRow],
    partition: int,
    held: Container[TreeKey] = (),
    times: Mapping[TreeKey, int] = MappingProxyType({}),
    traces: Mapping[TreeKey, str] = MappingProxyType({}),
) -> list[Crossing]:
    """What others read of new updates: of each tree a record for all partitions in which they do.

    One that is too large for a record is cut between its updates. Of these trees those that were
    `held` cross by a channel of their own. `times` are the log's of each tree,
    `traces` the contexts of those that have one.
    """
    trees: dict[TreeKey, list[NewRow]] = {}
    for row in new:
        if row[0].read_in and not is_passing(row[0], row[2], row[5]):
            trees.setdefault(row[3], []).append(row)
    found = []
    for (offset, tree), rows_ in trees.items():
        for number, some in enumerate(_parts(rows_)):
            channels = channel(partition, was_held=TreeKey(offset, tree) in held)
            source = Source(channels, offset, number)
            key = TreeKey(offset, tree)
            record = BorderRecord(
                source,
                some[0][0].tenant,
                tuple(map(_crossing, some)),
                at=times.get(key, 0),
                trace=traces.get(key, ""),
            )
            where = sorted({each for stream, *_ in some for each in stream.read_in})
            found.append(Crossing(offset, tree, number, tuple(where), write(record)))
    return found


def _parts(some: Sequence[NewRow]) -> Iterator[list[NewRow]]:
    part: list[NewRow] = []
    room = MAX_CROSSING_BYTES
    for row in some:
        stream, _timestamp, document, _key, _position, path = row
        size = (
            len(document)
            + len(stream.head.whose)
            + len(stream.head.begin)
            + STEP_BYTES * (2 + len(path))
        )
        if part and size > room:
            yield part
            part, room = [], MAX_CROSSING_BYTES
        part.append(row)
        room -= size
    yield part


def _crossing(row: NewRow) -> BorderUpdate:
    stream, timestamp, document, _key, _position, path = row
    return BorderUpdate(*stream.ref, timestamp, path, msgspec.Raw(document))


def kept(changed: Iterable[KeptEntry]) -> list[StoredEntry]:
    """What composites keep after a batch, where it is other than before, in order."""
    return sorted(
        StoredEntry(stream.tenant, stream.stream_id, key, value, due)
        for stream, key, value, due, _grows in changed
    )


def inputs(changed: Mapping[KnownStream, LastUpdate]) -> list[StoredInput]:
    """What Service Objects keep of inputs from outside, as they are after a batch."""
    return sorted(
        StoredInput(*stream.keeper, StreamRef(*stream.ref), last.timestamp, last.document)
        for stream, last in changed.items()
        if stream.keeper is not None
    )


def states(changed: Mapping[KnownStream, LastUpdate]) -> list[StoredState]:
    """What streams whose last update a batch changed keep, in order of stream."""
    return sorted(
        StoredState(stream.tenant, stream.stream_id, last.state)
        for stream, last in changed.items()
        if last.state is not None
    )


def verdicts(endings: Iterable[Verdict]) -> list[StoredVerdict]:
    """How often each composite's computations ended how, and the last one of each kind."""
    rows = []
    for composite, kind, trigger, timestamp, message, inputs, times in endings:
        about = {
            "trigger": trigger.key,
            "timestamp": timestamp,
            "version": composite.version,
            "message": message,
            "inputs": {} if inputs is None else _inputs(composite, inputs),
        }
        row = composite.tenant, composite.stream_id, kind, times, orjson.dumps(about)
        rows.append(_stored(StoredVerdict, row))
    return sorted(rows, key=_BY_STREAM)


def _inputs(composite: KnownStream, times: Iterable[int | None]) -> dict[str, int | None]:
    """The timestamp of each input that the computation had, by the input's name."""
    found = composite.composite
    if found is None:
        return {}
    return _short({each.name: at for each, at in zip(found.inputs, times, strict=True)})


def _short(inputs: dict[str, int | None]) -> dict[str, int | None]:
    """The first of them, as many as there is room for; how many more under `...`."""
    if len(inputs) <= ALWAYS_FIT:
        return inputs
    room = MAX_INPUTS_BYTES
    for number, name in enumerate(inputs):
        room -= 24 + len(name.encode())
        if room < 0:
            some: dict[str, int | None] = dict(list(inputs.items())[:number])
            return some | {"...": len(inputs) - number}
    return inputs
