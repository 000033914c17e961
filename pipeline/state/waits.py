"""What waits of a stream, out of the store, as its program is asked about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from servioticy.domain.evaluators.programs import STATE, entry, waiting_of
from servioticy.ports.partition_store import PartitionStore

MAX_EVENT_BYTES = 1024 * 1024
"""In one question, by the bytes that the store has of them."""


class Waits(NamedTuple):
    """The oldest updates that wait, and what the stream keeps."""

    events: Sequence[bytes]
    """As a program is asked about them."""
    timestamps: Sequence[int]
    """Of each."""
    traces: Sequence[str]
    """Of each the trace context that it came with; empty: none has one."""
    state: bytes | None


def waits_of(
    store: PartitionStore, stream_id: int, begun: int, numbers: range, version: int
) -> Waits:
    """Return those that wait under these numbers, of a queue that has begun then, or the first.

    As many as fit into a question. `version` is told with each; none are returned where it is
    stored otherwise by now.
    """
    kept = store.kept([(stream_id, key) for key in (STATE, *map(entry, numbers))])
    events: list[bytes] = []
    timestamps: list[int] = []
    traces: list[str] = []
    size = 0
    for number in numbers:
        found = kept.get((stream_id, entry(number)))
        size += 0 if found is None else len(found.value)
        if found is None or (events and size > MAX_EVENT_BYTES):
            break
        waiting = waiting_of(found.value)
        timestamps.append(waiting.timestamp)
        traces.append(waiting.trace)
        events.append(
            b'{"stream":%b,"input":%b,"timestamp":%d,"channels":%b,"version":%d,'
            b'"correlation":"%x-%d"}'
            % (
                orjson.dumps(waiting.stream),
                orjson.dumps(waiting.input),
                waiting.timestamp,
                waiting.channels,
                version,
                begun,
                number,
            )
        )
    state = kept.get((stream_id, STATE))
    told = traces if any(traces) else ()
    return Waits(events, timestamps, told, None if state is None else state.value)
