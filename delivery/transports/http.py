"""Updates over plain HTTP: server-sent events, and what clients ask of their subscriptions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from math import ceil
from urllib.parse import quote

from delivery.admission.refusals import NO_ANSWER, Refusal, Refused
from delivery.admission.requests import Admission, Identity, fields_of, token_of
from delivery.admission.stays import Grounds
from delivery.endings import Ending
from delivery.feeds.event_ids import EventId, read_event_id
from delivery.feeds.feeds import Feeds
from delivery.feeds.lent import lend
from delivery.feeds.pulls import Pulls
from delivery.hub import Hub
from delivery.transports import pulling
from delivery.transports.event_stream import EventStream, own_event, stream_event
from delivery.transports.http_call import HttpCall
from delivery.transports.passing_on import PassingOn
from delivery.transports.readers import Reader
from servioticy.domain.records import Position
from servioticy.errors import Unavailable
from servioticy.http_heads import Head

CHECK_SECONDS = 5.0
CHECKED_AT_ONCE = 64
NO_EVENT = Refusal(400, "Last-Event-ID has to be the id of an event that came from here")

_PULLED = re.compile(r"/subscriptions/([^/]+)/(events|updates|acknowledgements|position)/?")
_STREAM_EVENTS = re.compile(r"/[^/]+/streams/[^/]+/events/?")


class HttpTransport:
    """Serves requests that open no WebSocket; their connections come from the same port."""

    def __init__(
        self, hub: Hub, feeds: Feeds, pulls: Pulls, passing_on: PassingOn | None = None
    ) -> None:
        """Without `passing_on` what another process has is not asked of that one."""
        self._passing_on = passing_on
        self._hub = hub
        self._feeds = feeds
        self._pulls = pulls
        self._readers: dict[Reader, EventStream | None] = {}
        self._checking: asyncio.Task[None] | None = None

    def protocol(self) -> HttpCall:
        """Return what serves a new connection."""
        return HttpCall(self._hub.reception.pending, self._serve)

    async def start(self) -> None:
        """Look after those that are connected, from now on."""
        self._checking = asyncio.create_task(self._check())

    async def stop(self) -> None:
        """End all, and say why."""
        if self._checking is not None:
            self._checking.cancel()
        for reader in list(self._readers):
            reader.end(Ending.STOPPING)
        while self._readers:
            await asyncio.sleep(0.01)

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            now = asyncio.get_running_loop().time()
            for number, stream in enumerate(list(self._readers.values())):
                if stream is not None:
                    stream.check(now)
                if number % CHECKED_AT_ONCE == CHECKED_AT_ONCE - 1:
                    await asyncio.sleep(0)

    async def _serve(self, call: HttpCall, head: Head, body: bytes) -> None:
        path, allowed = quote(head.path, safe="/", encoding="latin-1"), "GET"
        pulled = _PULLED.fullmatch(path)
        if pulled is not None and pulled[2] == "acknowledgements":
            allowed = "POST"
        if head.method == "OPTIONS":
            call.answer(HTTPStatus.NO_CONTENT, b"")
        elif pulled is None and not _STREAM_EVENTS.fullmatch(path):
            call.refuse(Refusal(404, "There is nothing at this address"))
        elif head.method != allowed:
            refusal = Refusal(405, f"Here only {allowed} is understood")
            call.answer(405, refusal.body(), {"Allow": f"{allowed}, OPTIONS"})
        elif pulled is None:
            await self._stream(call, head, path)
        else:
            await self._subscription(call, head, pulled, body)

    # A stream, for as long as its client stays

    async def _stream(self, call: HttpCall, head: Head, path: str) -> None:
        last = _last_event(head)
        authorization = head.headers.get("HTTP_AUTHORIZATION", "")
        target = f"{path}?{head.query}"
        answer = await self._hub.reception.decide(call, target, authorization)
        if isinstance(answer, Refusal):
            call.refuse(answer)
        elif isinstance(last, Refusal):
            call.refuse(last)
        else:
            try:
                await self._feed_stream(call, answer, last)
            except Unavailable:
                call.refuse(NO_ANSWER)

    async def _feed_stream(
        self, call: HttpCall, admission: Admission, last: EventId | None
    ) -> None:
        feed, begins = await lend(self._feeds, admission, last, self._hub.newest)
        try:
            stream = EventStream(call, feed, feed.take, feed.done, stream_event, self._hub.turns)
            stream.begin(begins)
            stream.passed = partial(self._passed, admission.partition)
            await self._run(stream, admission, Reader())
        finally:
            self._feeds.take_back(feed)

    def _passed(self, partition: int) -> Position:
        """Return the place up to which everything has been offered."""
        offset = self._feeds.fanout.cursor.next_offsets().get(partition, 0)
        return Position(partition, offset - 1)

    async def _run(self, stream: EventStream, grounds: Grounds, reader: Reader) -> None:
        self._hub.connections += 1
        try:
            with self._reading(reader, grounds, stream):
                await stream.run(reader)
        finally:
            self._hub.connections -= 1

    @contextmanager
    def _reading(
        self, reader: Reader, grounds: Grounds, stream: EventStream | None
    ) -> Iterator[None]:
        """Let it be ended when the program stops, or when it may read no longer."""
        self._readers[reader] = stream
        stay = self._hub.reception.stays.begin(grounds, reader.end)
        try:
            yield
        finally:
            self._hub.reception.stays.leave(stay)
            del self._readers[reader]

    # A durable subscription

    async def _subscription(
        self, call: HttpCall, head: Head, found: re.Match[str], body: bytes
    ) -> None:
        query = fields_of(head.query)
        if isinstance(query, Refusal):
            return call.refuse(query)
        token = token_of(query, head.headers.get("HTTP_AUTHORIZATION", ""))
        if isinstance(token, Refusal):
            return call.refuse(token)
        identity = await self._hub.reception.identify(call, token)
        if isinstance(identity, Refusal):
            return call.refuse(identity)
        work: dict[str, Callable[[], Awaitable[None]]] = {
            "events": partial(self._events, call, found[1], identity, head),
            "updates": partial(self._updates, call, found[1], identity, query),
            "acknowledgements": partial(self._acknowledge, call, found[1], identity, body),
            "position": partial(self._position, call, found[1], identity),
        }
        try:
            try:
                await work[found[2]]()
            except Refused as error:
                if error.refusal is not pulling.NOT_HERE or found[2] == "events":
                    raise
                await self._elsewhere(call, head, found, identity, body)
        except Refused as error:
            call.refuse(error.refusal)

    async def _elsewhere(
        self, call: HttpCall, head: Head, found: re.Match[str], who: Identity, body: bytes
    ) -> None:
        """Answer what the process says that has the subscription. Raises Refused."""
        if self._passing_on is None:
            raise Refused(pulling.NOT_HERE)
        reader = Reader()
        try:
            with self._reading(reader, who, None):
                answer = await self._passing_on.ask(found[1], who.tenant, head, found[0], body)
        except asyncio.CancelledError:
            raise Refused(pulling.why_ended(reader.why())) from None
        seconds = answer.retry_seconds
        headers = {} if seconds is None else {"Retry-After": str(ceil(seconds))}
        call.answer(answer.status, answer.body, headers)

    async def _events(self, call: HttpCall, id_: str, who: Identity, head: Head) -> None:
        last = _last_event(head)
        if isinstance(last, Refusal):
            return call.refuse(last)
        pull = await pulling.find(self._pulls, self._feeds, id_, who)
        pulling.check_rest(pull)
        if last is not None and not pulling.go_on(pull, last):
            last = None
        reader = Reader()
        pull.attach(reader.end)
        try:
            stream = EventStream(call, pull.feed, pull.take, _keep, own_event, self._hub.turns)
            stream.begin(last)
            await self._run(stream, who, reader)
        finally:
            pull.detach(reader.end)
        return None

    async def _updates(
        self, call: HttpCall, id_: str, who: Identity, query: dict[str, list[str]]
    ) -> None:
        wanted = pulling.read_wanted(query)
        pull = await pulling.find(self._pulls, self._feeds, id_, who)
        pulling.check_rest(pull)
        if wanted.cursor is not None and not pulling.go_on(pull, wanted.cursor):
            wanted = wanted._replace(cursor=None)
        reader = Reader()
        pull.attach(reader.end)
        try:
            with self._reading(reader, who, None):
                found = await pulling.collect(pull, wanted, reader, self._hub.turns)
            call.answer(200, found)
        finally:
            pull.detach(reader.end)

    async def _acknowledge(self, call: HttpCall, id_: str, who: Identity, body: bytes) -> None:
        last = pulling.read_acknowledgement(body)
        pull = await pulling.find(self._pulls, self._feeds, id_, who)
        pulling.acknowledge(pull, last)
        await pulling.settled(pull)
        call.answer(200, pulling.position(self._feeds, pull.feed))

    async def _position(self, call: HttpCall, id_: str, who: Identity) -> None:
        feed = await pulling.find_feed(self._feeds, id_, who)
        call.answer(200, pulling.position(self._feeds, feed))


def _keep(_delivery: object) -> None:
    """Wait for its acknowledgement: that it was written is none."""


def _last_event(head: Head) -> EventId | Refusal | None:
    """Return the event after which to go on, if one is named."""
    text = head.headers.get("HTTP_LAST_EVENT_ID", "")
    return (read_event_id(text) or NO_EVENT) if text else None
