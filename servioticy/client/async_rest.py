"""A client of the REST API for asyncio: `Rest`, with an `await` before each of its methods."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Self, TypeVar

import httpx

from servioticy.client import batches, calls
from servioticy.client.answers import Answer, Answered
from servioticy.client.authorities import Authorities
from servioticy.client.batches import BatchResult
from servioticy.client.calls import Call, Claimed, Document, ServiceObject, Update
from servioticy.client.retries import Attempts, Retries
from servioticy.client.transport import (
    TIMEOUT_SECONDS,
    answer,
    explained,
    options,
    typed,
)
from servioticy.errors import Unavailable

T = TypeVar("T")


class AsyncRest:
    """One API and one token, with connections that are kept between requests.

    The methods are those of `Rest`, and raise the same. May be used by many tasks at once.
    `ca` is a PEM file of the authorities that vouch for it by https (empty: those known anyway).
    """

    def __init__(
        self,
        url: str,
        token: str,
        timeout_seconds: float = TIMEOUT_SECONDS,
        retries: Retries | None = None,
        ca: Authorities = "",
    ) -> None:
        self._http = httpx.AsyncClient(**options(url, token, timeout_seconds, ca))
        self._retries = retries or Retries()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def create(self, document: Document) -> str:
        """Create a Service Object and return its id."""
        return await self.run(calls.create(document))

    async def claim(
        self, code: str, device: str, key: str, parameters: Document | None = None
    ) -> Claimed:
        """Get a Service Object and a token for a claim code; no other token is needed.

        Who asks again with the same key, which is a secret of its own, gets the same.
        """
        return await self.run(calls.claim(code, device, key, parameters or {}))

    async def read(self, service_object: str) -> ServiceObject:
        """Return the document in force, with its ETag."""
        return await self.run(calls.read(service_object))

    async def change(
        self, service_object: str, document: Document, if_match: str | None = None
    ) -> None:
        """Put another document in force; with `if_match` only over the state that it names."""
        await self.run(calls.change(service_object, document, if_match))

    async def merge(
        self, service_object: str, part: Document, if_match: str | None = None
    ) -> None:
        """Change a part of the document: objects are merged, None takes a key away."""
        await self.run(calls.merge(service_object, part, if_match))

    async def delete(self, service_object: str) -> None:
        """Delete a Service Object and all that is stored of it."""
        await self.run(calls.delete(service_object))

    async def ids(self) -> list[str]:
        """Return the tenant's Service Objects."""
        return await self.run(calls.ids())

    async def find(
        self, conditions: Mapping[str, str] | None = None, page_size: int | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield id, name and dates of the Service Objects that fit."""
        query: str | None = calls.find_query(conditions or {}, page_size)
        while query is not None:
            page = await self.run(calls.found(query))
            for each in page.data:
                yield each
            query = page.next

    async def put(self, service_object: str, stream: str, update: Update) -> None:
        """Send a Sensor Update; returns when the platform has it for good."""
        await self.run(calls.put(service_object, stream, update))

    async def put_many(
        self, service_object: str, stream: str, updates: Sequence[Update]
    ) -> BatchResult:
        """Send many updates of a stream in batches; what is refused is told one by one."""
        return await self._all(batches.of_one(service_object, stream, updates))

    async def put_everywhere(self, updates: Sequence[tuple[str, str, Update]]) -> BatchResult:
        """Send updates of many streams in batches: Service Object, stream and update of each."""
        return await self._all(batches.of_many(updates))

    async def updates(self, service_object: str, stream: str) -> list[dict[str, Any]]:
        """Return everything stored of a stream, oldest first."""
        return await self.run(calls.updates(service_object, stream))

    async def history(
        self,
        service_object: str,
        stream: str,
        after: int | None = None,
        before: int | None = None,
        newest_first: bool = False,
        page_size: int | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the updates between two timestamps, page by page; both bounds belong to it."""
        query: str | None = calls.history_query(after, before, page_size, newest_first)
        while query is not None:
            page = await self.run(calls.page(service_object, stream, query))
            for each in page.data:
                yield each
            query = page.next

    async def last_update(self, service_object: str, stream: str) -> dict[str, Any] | None:
        """Return the stream's newest update, or None."""
        return await self.run(calls.last_update(service_object, stream))

    async def last_updates(
        self, streams: Sequence[tuple[str, str]]
    ) -> list[dict[str, Any] | None]:
        """Return the newest update of each stream; None where there is none to be read."""
        return await self.run(calls.last_updates(streams))

    async def last_timestamp(self, service_object: str, stream: str) -> int | None:
        """Return the stream's newest `lastUpdate`, or None."""
        found = await self.last_update(service_object, stream)
        return None if found is None else int(found["lastUpdate"])

    async def erase(self, service_object: str, stream: str) -> None:
        """Forget what is stored of a stream."""
        await self.run(calls.erase(service_object, stream))

    async def status(self, service_object: str, stream: str) -> dict[str, Any]:
        """Return how computations of a composite stream ended."""
        return await self.run(calls.status(service_object, stream))

    async def tree(self, service_object: str, stream: str) -> dict[str, Any]:
        """Return what an update of a stream will do."""
        return await self.run(calls.tree(service_object, stream))

    async def trace(
        self, service_object: str, stream: str, timestamp: int | None = None
    ) -> dict[str, Any]:
        """Return what became of an update, or of the newest one."""
        return await self.run(calls.trace(service_object, stream, timestamp))

    async def try_(
        self, service_object: str, document: Document, last: int = 20
    ) -> dict[str, Any]:
        """Return what a changed document would have made of the last updates; nothing changes."""
        return await self.run(calls.try_(service_object, document, last))

    async def backfill(self, service_object: str, stream: str, since: int, until: int) -> str:
        """Have a composite, and what is derived from it, computed from what is stored of a span.

        From a timestamp on and before another; the id of the job that does it.
        """
        return await self.run(calls.backfill(service_object, stream, since, until))

    async def job(self, id_: str) -> dict[str, Any]:
        """Return how far a job is."""
        return await self.run(calls.job(id_))

    async def cancel(self, job: str) -> None:
        """Cancel a backfill that is not done: nothing is left of it."""
        await self.run(calls.cancel(job))

    async def push_operator(self, name: str, archive: bytes) -> dict[str, Any]:
        """Store a program, a folder as tar and gzip, as a further version; return what it is."""
        return await self.run(calls.push_operator(name, archive))

    async def operators(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the versions of the tenant's programs, the newest of each first."""
        after: str | None = ""
        while after is not None:
            page = await self.run(calls.operators(after))
            for each in page.data:
                yield each
            after = page.next

    async def operator(self, name: str, version: int) -> dict[str, Any]:
        """Return what a version of a program is, and how it runs."""
        return await self.run(calls.operator(name, version))

    async def remove_operator(self, name: str, version: int | None = None) -> None:
        """Remove a version of a program, or all."""
        await self.run(calls.remove_operator(name, version))

    async def usage(
        self, by: str = "all", after: int | None = None, before: int | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield what the tenant has used, summed up by `hour`, `stream`, ... or in all.

        Of the last day, or of the hours between two times in milliseconds.
        """
        query: str | None = calls.usage_query(by, after, before)
        while query is not None:
            page = await self.run(calls.usage(query))
            for each in page.data:
                yield each
            query = page.next

    async def quotas(self) -> list[dict[str, Any]]:
        """Return each quota of the tenant with its limit, and what is used of it."""
        return await self.run(calls.quotas())

    async def platform(self) -> dict[str, Any]:
        """Return how the whole platform is; for admins of the operator's tenant."""
        return await self.run(calls.platform())

    async def woven(self) -> dict[str, Any]:
        """Read what is woven into the programs of the API's machine, as `slowest` does."""
        return await self.run(calls.woven())

    async def measured_traces(self) -> list[dict[str, Any]]:
        """List the traces that were measured last; for admins of the operator's tenant."""
        return list((await self.run(calls.measured_traces()))["data"])

    async def measured_trace(self, trace: str) -> dict[str, Any]:
        """Read all steps of one; for admins of the operator's tenant."""
        return await self.run(calls.measured_trace(trace))

    async def applications(self) -> list[dict[str, Any]]:
        """Return how each application that is not ours is, as `slowest` does."""
        return list((await self.run(calls.applications()))["data"])

    async def application(self, name: str) -> dict[str, Any]:
        """Return how an application is, and how long its steps take, as `slowest` does."""
        return await self.run(calls.application(name))

    async def slowest(self, by: str = "total") -> dict[str, Any]:
        """Return whose code takes most of the processor: in all, or `each` time."""
        return await self.run(calls.slowest(by))

    async def subscribe(self, service_object: str, stream: str, wanted: Document) -> str:
        """Subscribe to a stream and return the subscription's id."""
        return await self.run(calls.subscribe(service_object, stream, wanted))

    async def unsubscribe(self, subscription: str) -> None:
        """Drop a subscription."""
        await self.run(calls.unsubscribe(subscription))

    async def run(self, call: Call[T]) -> T:
        """Send a call, and again while that may help, and return what its answer says."""
        attempts = Attempts(call, self._retries)
        while True:
            try:
                found = await self._sent(call.method, call.path, call.body, call.headers)
            except Unavailable as error:
                await asyncio.sleep(attempts.failed(error))
                continue
            if found.status < HTTPStatus.BAD_REQUEST:
                return call.read(found)
            await asyncio.sleep(attempts.refused(found))

    async def request(
        self,
        method: str,
        path: str,
        document: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask once and return the answer, whatever it is; a `document` is sent as JSON.

        Raises Unavailable where no whole answer comes, ServioticyError where the request
        itself cannot be sent.
        """
        body = None if document is None else json.dumps(document).encode()
        return await self._sent(method, path, body, headers or {})

    async def download(self, path: str) -> AsyncIterator[bytes]:
        """Yield the body of an answer as it comes, however long it is. Raises as others do."""
        with explained("GET", path):
            async with self._http.stream("GET", path) as found:
                if found.status_code >= HTTPStatus.BAD_REQUEST:
                    await found.aread()
                    raise Answered.of(answer(found))
                async for part in found.aiter_bytes():
                    yield part

    async def close(self) -> None:
        """Let the connection go."""
        await self._http.aclose()

    async def _sent(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        sent = typed(body, headers)
        with explained(method, path):
            found = await self._http.request(method, path, content=body, headers=sent)
            return answer(found)

    async def _all(self, wanted: Iterable[Call[BatchResult]]) -> BatchResult:
        result = BatchResult(0)
        for each in wanted:
            result += await self.run(each)
        return result
