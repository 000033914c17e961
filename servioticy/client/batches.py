"""Many updates in as few calls as may be, each accepted or refused by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from servioticy.client.answers import Answer
from servioticy.client.calls import Call, Update, stream_path, to_json

NDJSON = "application/x-ndjson"
MAX_ITEMS = 10_000
"""Updates of one batch; the API takes no more."""
MAX_STREAMS = 1_000
"""Streams that one batch may name."""
MAX_BYTES = 1_000_000
"""Bytes of one batch; the API takes `max_body_bytes`, a little more where it is not set."""


_Item = tuple[tuple[str, str], bytes]
"""An update as it is sent, and its stream."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An update of a batch that was not accepted. `index` counts from 0 in what was sent."""

    index: int
    status: int
    reason: str
    pointer: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What became of a batch: all that is not refused is in the log for good."""

    accepted: int
    refused: tuple[Refusal, ...] = ()

    def __add__(self, other: BatchResult) -> BatchResult:
        return BatchResult(self.accepted + other.accepted, self.refused + other.refused)


def of_one(
    service_object: str, stream: str, updates: Sequence[Update]
) -> Iterator[Call[BatchResult]]:
    """Yield the calls that send these updates of one stream, as few as may be."""
    path = f"{stream_path(service_object, stream)}/updates"
    yield from _batches(path, [((service_object, stream), to_json(each)) for each in updates])


def of_many(
    updates: Sequence[tuple[str, str, Update]],
) -> Iterator[Call[BatchResult]]:
    """Yield the calls that send updates of many streams: Service Object, stream, update."""
    written = [
        (
            (service_object, stream),
            to_json({"serviceObject": service_object, "stream": stream, "update": update}),
        )
        for service_object, stream, update in updates
    ]
    yield from _batches("/updates", written)


def of_csv(service_object: str, stream: str, rows: bytes, first: int) -> Call[BatchResult]:
    """Send updates of one stream as CSV: a line of names, then a line each.

    `first` is the place of the first of them among all that are sent.
    """
    path = f"{stream_path(service_object, stream)}/updates"
    return _batch(path, rows, "text/csv", first)


def _batches(path: str, items: Sequence[_Item]) -> Iterator[Call[BatchResult]]:
    """Yield the calls that send these items; what is refused is counted over all of them."""
    batch: list[bytes] = []
    streams: set[tuple[str, str]] = set()
    size = sent = 0
    for stream, item in items:
        streams.add(stream)
        size += len(item) + 1
        if batch and (len(batch) == MAX_ITEMS or size > MAX_BYTES or len(streams) > MAX_STREAMS):
            yield _batch(path, b"\n".join(batch), NDJSON, sent)
            sent += len(batch)
            batch, streams, size = [], {stream}, len(item) + 1
        batch.append(item)
    if batch:
        yield _batch(path, b"\n".join(batch), NDJSON, sent)


def _batch(path: str, body: bytes, form: str, first: int) -> Call[BatchResult]:
    def reads(answer: Answer) -> BatchResult:
        said = answer.json()
        refused = tuple(
            Refusal(
                first + each["index"],
                each["status"],
                each["message"],
                each.get("pointer"),
                each.get("code"),
            )
            for each in said.get("items", ())
        )
        return BatchResult(said["accepted"], refused)

    return Call("POST", path, reads, body, {"Content-Type": form})
