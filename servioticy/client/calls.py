"""What can be asked of the API: each call as what is sent, and how its answer is read.

`Rest` and `AsyncRest` send them; nothing here opens a connection.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from servioticy.client.answers import Answer

T = TypeVar("T")
Document = Mapping[str, Any]
Update = Mapping[str, Any]
"""A Sensor Update: `channels` and `lastUpdate`."""

IDEMPOTENCY = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request, and how the answer to it is read.

    `harmless_again`: whether it may be sent twice; so it may with a key that the API remembers.
    Then a conflict says that the first time is still being worked on.
    """

    method: str
    path: str
    read: Callable[[Answer], T]
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    harmless_again: bool = True

    @property
    def has_key(self) -> bool:
        """Whether the API knows it again by a key."""
        return IDEMPOTENCY in self.headers


@dataclass(frozen=True, slots=True)
class ServiceObject:
    """A document as it is in force, and what `If-Match` calls that state."""

    id: str
    document: dict[str, Any]
    etag: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a device gets for a claim code: a Service Object, and a token for that alone."""

    service_object: str
    token: str


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list, and what to ask for the next one; None after the last."""

    data: list[dict[str, Any]]
    next: str | None


def create(document: Document) -> Call[str]:
    """Create a Service Object, under a key of its own by which the API knows it again."""
    key = {IDEMPOTENCY: uuid.uuid4().hex}
    return Call("POST", "/", _id, to_json(document), key)


def claim(code: str, device: str, key: str, parameters: Document) -> Call[Claimed]:
    """Get a Service Object and a token; asked again with the same key, it is the same."""

    def reads(answer: Answer) -> Claimed:
        found = answer.json()
        return Claimed(found["id"], found["api_token"])

    sent = {"code": code, "device": device, "key": key, "parameters": parameters}
    return Call("POST", "/claims", reads, to_json(sent))


def ids() -> Call[list[str]]:
    """List the tenant's Service Objects."""
    return Call("GET", "/", lambda answer: list(answer.json()))


def found(query: str) -> Call[Page]:
    """Read a page of the Service Objects that fit a query of `find_query`, or the next one."""
    return _page(f"/service-objects?{query}")


def find_query(conditions: Mapping[str, str], page_size: int | None) -> str:
    """Return what to ask for Service Objects that fit (docs/rest/service-objects.md)."""
    limit = {} if page_size is None else {"limit": str(page_size)}
    return urlencode({**conditions, **limit})


def read(service_object: str) -> Call[ServiceObject]:
    """Read the document in force."""

    def reads(answer: Answer) -> ServiceObject:
        return ServiceObject(service_object, answer.json(), answer.headers.get("etag", "*"))

    return Call("GET", object_path(service_object), reads)


def change(service_object: str, document: Document, if_match: str | None) -> Call[None]:
    """Put another document in force; with `if_match` only over the state that it names."""
    headers = {} if if_match is None else {"If-Match": if_match}
    return Call("PUT", object_path(service_object), _nothing, to_json(document), headers)


def merge(service_object: str, part: Document, if_match: str | None) -> Call[None]:
    """Change a part of the document: objects are merged, None takes a key away (RFC 7396)."""
    headers = {"Content-Type": "application/merge-patch+json"}
    headers |= {} if if_match is None else {"If-Match": if_match}
    return Call("PATCH", object_path(service_object), _nothing, to_json(part), headers)


def delete(service_object: str) -> Call[None]:
    """Delete a Service Object and all that is stored of it."""
    return Call("DELETE", object_path(service_object), _nothing)


def put(service_object: str, stream: str, update: Update) -> Call[None]:
    """Send a Sensor Update. Twice is harmless: the same timestamp overwrites."""
    return Call("PUT", stream_path(service_object, stream), _nothing, to_json(update))


def updates(service_object: str, stream: str) -> Call[list[dict[str, Any]]]:
    """Read everything stored of a stream, oldest first."""
    return Call("GET", stream_path(service_object, stream), _data)


def last_update(service_object: str, stream: str) -> Call[dict[str, Any] | None]:
    """Read the newest update of a stream."""

    def reads(answer: Answer) -> dict[str, Any] | None:
        return next(iter(_data(answer)), None)

    return Call("GET", f"{stream_path(service_object, stream)}/lastUpdate", reads)


def last_updates(streams: Sequence[tuple[str, str]]) -> Call[list[dict[str, Any] | None]]:
    """Read the newest update of each of many streams, in their order."""
    asked = [{"serviceObject": one, "stream": stream} for one, stream in streams]

    def reads(answer: Answer) -> list[dict[str, Any] | None]:
        return [each.get("update") for each in _data(answer)]

    return Call("POST", "/lastUpdates", reads, to_json({"streams": asked}))


def erase(service_object: str, stream: str) -> Call[None]:
    """Forget what is stored of a stream."""
    return Call("DELETE", stream_path(service_object, stream), _nothing)


def status(service_object: str, stream: str) -> Call[dict[str, Any]]:
    """Ask how computations of a composite stream ended."""
    return Call("GET", f"{stream_path(service_object, stream)}/status", _object)


def tree(service_object: str, stream: str) -> Call[dict[str, Any]]:
    """Ask what an update of a stream will do."""
    return Call("GET", f"{stream_path(service_object, stream)}/tree", _object)


def trace(service_object: str, stream: str, timestamp: int | None) -> Call[dict[str, Any]]:
    """Ask what became of an update, or of the newest one."""
    query = "" if timestamp is None else f"?{urlencode({'timestamp': timestamp})}"
    return Call("GET", f"{stream_path(service_object, stream)}/trace{query}", _object)


def try_(service_object: str, document: Document, last: int) -> Call[dict[str, Any]]:
    """Ask what a changed document would have made of the last updates; nothing changes."""
    path = f"{object_path(service_object)}/try?{urlencode({'last': last})}"
    return Call("POST", path, _object, to_json(document))


def backfill(service_object: str, stream: str, since: int, until: int) -> Call[str]:
    """Have a composite computed from what is stored of a span; the id of the job."""
    path = f"{stream_path(service_object, stream)}/backfill"
    body = to_json({"from": since, "to": until})
    return Call("POST", path, lambda answer: str(answer.json()["job"]), body)


def job(id_: str) -> Call[dict[str, Any]]:
    """Read how far a job is."""
    return Call("GET", f"/jobs/{quote(id_, safe='')}", _object)


def cancel(job: str) -> Call[None]:
    """Cancel a backfill that is not done."""
    return Call("DELETE", f"/jobs/{quote(job, safe='')}", _nothing)


def push_operator(name: str, archive: bytes) -> Call[dict[str, Any]]:
    """Store a program as a further version; the same files once more are the same version."""
    headers = {"Content-Type": "application/gzip"}
    return Call("PUT", f"/operators/{quote(name, safe='')}", _object, archive, headers)


def operators(after: str = "") -> Call[Page]:
    """Read a page of the tenant's programs, and what follows it."""

    def reads(answer: Answer) -> Page:
        body = answer.json()
        return Page(list(body["operators"]), body.get("next"))

    return Call(
        "GET", f"/operators?{urlencode({'after': after})}" if after else "/operators", reads
    )


def operator(name: str, version: int) -> Call[dict[str, Any]]:
    """Read what a version of a program is, and how it runs."""
    return Call("GET", f"/operators/{quote(name, safe='')}/{version}", _object)


def remove_operator(name: str, version: int | None) -> Call[None]:
    """Remove a version of a program, or all."""
    query = "" if version is None else f"?{urlencode({'version': version})}"
    return Call("DELETE", f"/operators/{quote(name, safe='')}{query}", _nothing)


def usage(query: str) -> Call[Page]:
    """Read a page of what the tenant has used: the first by `usage_query`, or the next one."""

    def reads(answer: Answer) -> Page:
        body = answer.json()
        after = body.get("next")
        more = None if after is None else _with(query, "after", after)
        return Page(list(body["data"]), more)

    return Call("GET", f"/usage?{query}", reads)


def usage_query(by: str, after: int | None, before: int | None) -> str:
    """Return what to ask for what was used between two timestamps (docs/rest/usage.md)."""
    wanted = {"by": by, "from": after, "to": before}
    return urlencode({name: each for name, each in wanted.items() if each is not None})


def quotas() -> Call[list[dict[str, Any]]]:
    """Ask how much the tenant may have, and how much of it is used."""
    return Call("GET", "/quotas", lambda answer: list(answer.json()["quotas"]))


def platform() -> Call[dict[str, Any]]:
    """Read how the whole platform is; for admins of the operator's tenant."""
    return Call("GET", "/platform", _object)


def slowest(by: str) -> Call[dict[str, Any]]:
    """Read whose code takes most of the processor, by `total` or by what `each` takes."""
    return Call("GET", f"/platform/slowest?by={by}", _object)


def woven() -> Call[dict[str, Any]]:
    """Read what is woven into the programs of the API's machine; for the operator's admins."""
    return Call("GET", "/platform/monitoring", _object)


def measured_traces() -> Call[dict[str, Any]]:
    """List the traces that were measured last; for admins of the operator's tenant."""
    return Call("GET", "/platform/traces", _object)


def measured_trace(trace: str) -> Call[dict[str, Any]]:
    """Read all steps of one; for admins of the operator's tenant."""
    return Call("GET", f"/platform/traces/{quote(trace, safe='')}", _object)


def applications() -> Call[dict[str, Any]]:
    """Read how applications that are not ours are; for admins of the operator's tenant."""
    return Call("GET", "/platform/applications", _object)


def application(name: str) -> Call[dict[str, Any]]:
    """Read how one is, and how long its steps take; for admins of the operator's tenant."""
    return Call("GET", f"/platform/applications/{quote(name, safe='')}", _object)


def subscribe(service_object: str, stream: str, wanted: Document) -> Call[str]:
    """Subscribe to a stream. Twice would be two subscriptions."""
    path = f"{stream_path(service_object, stream)}/subscriptions"
    return Call("POST", path, _id, to_json(wanted), harmless_again=False)


def unsubscribe(subscription: str) -> Call[None]:
    """Drop a subscription."""
    return Call("DELETE", f"/subscriptions/{quote(subscription, safe='')}", _nothing)


def page(service_object: str, stream: str, query: str) -> Call[Page]:
    """Read a page of a stream's history: the first by `history_query`, or the one it named."""
    return _page(f"{stream_path(service_object, stream)}/updates?{query}")


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


def _page(path: str) -> Call[Page]:
    def reads(answer: Answer) -> Page:
        return Page(_data(answer), _next(answer.headers.get("link", "")))

    return Call("GET", path, reads)


def _id(answer: Answer) -> str:
    return str(answer.json()["id"])


def _next(link: str) -> str | None:
    """Return what to ask for the next page, as the header `Link` says.

    Its path is that of the page before it. Its host is not looked at: the token is for ours.
    """
    for each in link.split(","):
        place, _, more = each.strip().partition(">")
        if place.startswith("<") and 'rel="next"' in more:
            return urlsplit(place[1:]).query
    return None


def _with(query: str, name: str, value: str) -> str:
    """Return the query with another value under this name."""
    others = [each for each in parse_qsl(query) if each[0] != name]
    return urlencode([*others, (name, value)])


def to_json(value: Any) -> bytes:
    """Return a value as compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def _data(answer: Answer) -> list[dict[str, Any]]:
    found = answer.json()
    return [] if found is None else list(found["data"])


def _object(answer: Answer) -> dict[str, Any]:
    return dict(answer.json())


def _nothing(_answer: Answer) -> None:
    return None
