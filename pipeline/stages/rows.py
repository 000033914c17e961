"""What a batch is outside: rows of updates, states and verdicts, and records for subscribers."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from operator import attrgetter
from typing import cast

import orjson

from pipeline.growth import NewRow, Verdict
from servioticy.domain.emissions import Emission, placed
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import LastUpdate
from servioticy.ports.partition_store import StoredState, StoredUpdate, StoredVerdict

MAX_INPUTS_BYTES = 2048
"""Of the inputs that a stored verdict tells: a composite may have a thousand."""

ALWAYS_FIT = 2
"""So many inputs do, whatever their names: 200 characters, four bytes each at most."""

_BY_STREAM = attrgetter("stream_id", "verdict")
_stored = cast(Callable[..., StoredVerdict], tuple.__new__)
"""A third of what it takes to call the class."""


def updates(new: Iterable[NewRow], repeating: Container[KnownStream] = ()) -> list[StoredUpdate]:
    """The history of new updates, which come in the serial order.

    Only streams that are `repeating` may have updates of these timestamps already.
    """
    return [
        StoredUpdate(
            stream.tenant,
            stream.stream_id,
            timestamp,
            document,
            stream.version,
            offset,
            position,
            stream not in repeating,
        )
        for stream, timestamp, document, offset, position, _path in new
    ]


def emissions(new: Iterable[NewRow]) -> list[Emission]:
    """Return what subscribers are sent of new updates."""
    return [
        placed(stream.head, timestamp, document, offset, path)
        for stream, timestamp, document, offset, _position, path in new
    ]


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
