"""What can be asked of the API: each call as what is sent, and how its answer is read.

`Rest` and `AsyncRest` send them; nothing here opens a connection.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from servioticy.client.answers import Answer

T = TypeVar("T")
Document = Mapping[str, Any]
Update = Mapping[str, Any]
"""A Sensor Update: `channels` and `lastUpdate`."""

NDJSON = "application/x-ndjson"
IDEMPOTENCY = "Idempotency-Key"
MAX_ITEMS = 10_000
"""Updates of one batch; the API takes no more."""
MAX_STREAMS = 1_000
"""Streams that one batch may name."""
MAX_BYTES = 1_000_000
"""Bytes of one batch; the API takes `max_body_bytes`, a little more where it is not set."""


_Item = tuple[tuple[str, str], bytes]
"""An update as it is sent, and its stream."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request, and how the answer to it is read.

    `harmless_again`: whether it may be sent twice; so it may with a key that the API remembers.
    """

    method: str
    path: str
    read: Callable[[Answer], T]
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    harmless_again: bool = True


@dataclass(frozen=True, slots=True)
class ServiceObject:
    """A document as it is in force, and what `If-Match` calls that state."""

    id: str
    document: dict[str, Any]
    etag: str


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


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a stream's history, and what to ask for the next one; None after the last."""

    updates: list[dict[str, Any]]
    next: str | None


def create(document: Document) -> Call[str]:
    """Create a Service Object."""
    return _posted("/", document, lambda answer: str(answer.json()["id"]))


def ids() -> Call[list[str]]:
    """List the tenant's Service Objects."""
    return Call("GET", "/", lambda answer: list(answer.json()))


def read(service_object: str) -> Call[ServiceObject]:
    """Read the document in force."""

    def reads(answer: Answer) -> ServiceObject:
        return ServiceObject(service_object, answer.json(), answer.headers.get("etag", "*"))

    return Call("GET", object_path(service_object), reads)


def change(service_object: str, document: Document, if_match: str | None) -> Call[None]:
    """Put another document in force; with `if_match` only over the state that it names."""
    headers = {} if if_match is None else {"If-Match": if_match}
    return Call("PUT", object_path(service_object), _nothing, _json(document), headers)


def delete(service_object: str) -> Call[None]:
    """Delete a Service Object and all that is stored of it."""
    return Call("DELETE", object_path(service_object), _nothing)


def put(service_object: str, stream: str, update: Update) -> Call[None]:
    """Send a Sensor Update. Twice is harmless: the same timestamp overwrites."""
    return Call("PUT", stream_path(service_object, stream), _nothing, _json(update))


def updates(service_object: str, stream: str) -> Call[list[dict[str, Any]]]:
    """Read everything stored of a stream, oldest first."""
    return Call("GET", stream_path(service_object, stream), _data)


def last_update(service_object: str, stream: str) -> Call[dict[str, Any] | None]:
    """Read the newest update of a stream."""

    def reads(answer: Answer) -> dict[str, Any] | None:
        return next(iter(_data(answer)), None)

    return Call("GET", f"{stream_path(service_object, stream)}/lastUpdate", reads)


def erase(service_object: str, stream: str) -> Call[None]:
    """Forget what is stored of a stream."""
    return Call("DELETE", stream_path(service_object, stream), _nothing)


def status(service_object: str, stream: str) -> Call[dict[str, Any]]:
    """Ask how computations of a composite stream ended."""
    return Call("GET", f"{stream_path(service_object, stream)}/status", _object)


def tree(service_object: str, stream: str) -> Call[dict[str, Any]]:
    """Ask what an update of a stream will do."""
    return Call("GET", f"{stream_path(service_object, stream)}/tree", _object)


def subscribe(service_object: str, stream: str, wanted: Document) -> Call[str]:
    """Subscribe to a stream."""
    path = f"{stream_path(service_object, stream)}/subscriptions"
    return _posted(path, wanted, lambda answer: str(answer.json()["id"]))


def unsubscribe(subscription: str) -> Call[None]:
    """Drop a subscription."""
    return Call("DELETE", f"/subscriptions/{quote(subscription, safe='')}", _nothing)


def batches(
    service_object: str, stream: str, updates: Sequence[Update]
) -> Iterator[Call[BatchResult]]:
    """Yield the calls that send these updates of one stream, as few as may be."""
    path = f"{stream_path(service_object, stream)}/updates"
    yield from _batches(path, [((service_object, stream), _json(each)) for each in updates])


def batches_of_many(
    updates: Sequence[tuple[str, str, Update]],
) -> Iterator[Call[BatchResult]]:
    """Yield the calls that send updates of many streams: Service Object, stream, update."""
    written = [
        (
            (service_object, stream),
            _json({"serviceObject": service_object, "stream": stream, "update": update}),
        )
        for service_object, stream, update in updates
    ]
    yield from _batches("/updates", written)


def page(service_object: str, stream: str, query: str) -> Call[Page]:
    """Read a page of a stream's history: the first by `history_query`, or the one it named."""

    def reads(answer: Answer) -> Page:
        return Page(_data(answer), _next(answer.headers.get("link", "")))

    return Call("GET", f"{stream_path(service_object, stream)}/updates?{query}", reads)


def csv_batch(service_object: str, stream: str, rows: bytes, first: int) -> Call[BatchResult]:
    """Send updates of one stream as CSV: a line of names, then a line each.

    `first` is the place of the first of them among all that are sent.
    """
    path = f"{stream_path(service_object, stream)}/updates"
    return _batch(path, rows, "text/csv", first)


def export_path(
    service_object: str, stream: str, form: str, after: int | None, before: int | None
) -> str:
    """Return the path of a stream's history as a file: csv, ndjson, parquet or arrow."""
    bounds = {"format": form, "from": after, "to": before}
    query = urlencode({name: each for name, each in bounds.items() if each is not None})
    return f"{stream_path(service_object, stream)}/export?{query}"


def history_query(
    after: int | None, before: int | None, page_size: int | None, newest_first: bool
) -> str:
    """Return what to ask a history for; both bounds belong to it."""
    wanted = {
        "from": after,
        "to": before,
        "limit": page_size,
        "order": "desc" if newest_first else None,
    }
    return urlencode({name: each for name, each in wanted.items() if each is not None})


def object_path(service_object: str) -> str:
    """Return the path of a Service Object."""
    return f"/{quote(service_object, safe='')}"


def stream_path(service_object: str, stream: str) -> str:
    """Return the path of a stream."""
    return f"{object_path(service_object)}/streams/{quote(stream, safe='')}"


def _posted(path: str, document: Document, read: Callable[[Answer], T]) -> Call[T]:
    """Post under a key of its own, by which the API knows it again."""
    return Call("POST", path, read, _json(document), {IDEMPOTENCY: uuid.uuid4().hex})


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


def _next(link: str) -> str | None:
    """Return what to ask for the next page, as the header `Link` says.

    Its path is that of the page before it. Its host is not looked at: the token is for ours.
    """
    for each in link.split(","):
        place, _, more = each.strip().partition(">")
        if place.startswith("<") and 'rel="next"' in more:
            return urlsplit(place[1:]).query
    return None


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _data(answer: Answer) -> list[dict[str, Any]]:
    found = answer.json()
    return [] if found is None else list(found["data"])


def _object(answer: Answer) -> dict[str, Any]:
    return dict(answer.json())


def _nothing(_answer: Answer) -> None:
    return None
