"""Receivers of HTTP callbacks on loopback, as good or bad as a test wants them, and feeds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Self

from delivery.backlog import Backlog
from delivery.callbacks.http_client import AttemptResult, HttpClient
from delivery.callbacks.requests import Outgoing, outgoing
from delivery.fanout import FanOut, LiveUpdate
from delivery.feeds.deliveries import Delivery
from delivery.feeds.feed import Feed
from servioticy.domain.model import LastUpdate, StreamKey, StreamRef
from servioticy.domain.records import Position
from servioticy.ports.cursors import DurableSubscription, StoredCursor
from servioticy.ports.dead_deliveries import DeadDelivery, Trouble

STREAM = StreamRef("pump", "flow")
DOCUMENT = b'{"id":"s","callback":"http","destination":"http://127.0.0.1/"}'


def a_feed(failing_since_ms: int | None = None) -> Feed:
    """A live feed of one stream, at the beginning of one partition."""
    subscription = DurableSubscription(
        "s",
        7,
        {STREAM: StreamKey(1, 1)},
        "http",
        DOCUMENT,
        0,
        StoredCursor({0: 0}),
        failing_since_ms,
    )
    fanout = FanOut(lambda _stream: ())
    fanout.begin_at({0: 0})
    feed = Feed(subscription, Backlog(10**9), fanout, lambda _feed: None)
    assert feed.go_live()
    return feed


def an_update(at: int) -> LiveUpdate:
    """The update of that time, which stands at that place."""
    document = b'{"channels":{"t":{"current-value":%d}},"lastUpdate":%d}' % (at, at)
    return LiveUpdate(STREAM, LastUpdate(at, document), 1, Position(0, at - 1), at)


class Receiver:
    """Answers every request the same way, and remembers what it got."""

    def __init__(
        self,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        raw: bytes | None = None,
    ) -> None:
        """`raw` is sent instead of an answer."""
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        lines = [f"HTTP/1.1 {status} As asked", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {text}" for name, text in (headers or {}).items()]
        head = "\r\n".join([*lines, "", ""]).encode()
        self._answer = head + body if raw is None else raw
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, *fields = head.strip().split("\r\n")
            headers = {name.lower(): text for name, _, text in (f.partition(": ") for f in fields)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.requests.append((line, headers, body))
            writer.write(self._answer)
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()


SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def an_outgoing() -> Outgoing:
    return outgoing(a_delivery())


def a_delivery(
    document: bytes = b'{"channels":{"t":{"current-value":4}},"lastUpdate":5}',
) -> Delivery:
    return Delivery(STREAM, LastUpdate(5, document), None)


class Dead:
    """Dead deliveries in memory."""

    def __init__(self) -> None:
        self.buried: list[tuple[DeadDelivery, str]] = []
        self.troubles: list[tuple[Trouble | None, bool]] = []
        self.again: list[DeadDelivery] = []

    def bury(self, _tenant: int, _id: str, dead: DeadDelivery, reason: str, _now: int) -> None:
        self.buried.append((dead, reason))

    def to_redrive(self, _tenant: int, _id: str) -> list[DeadDelivery]:
        return list(self.again)

    def revived(self, _tenant: int, _id: str, delivery: str) -> None:
        self.again = [each for each in self.again if each.id != delivery]

    def trouble(
        self, _tenant: int, _id: str, trouble: Trouble | None, *, stop: bool = False
    ) -> None:
        self.troubles.append((trouble, stop))


class Answers(HttpClient):
    """A client that hears what a test says, the last of it for ever, in no time."""

    def __init__(self, *statuses: int, seconds: float = 1.0) -> None:
        super().__init__()
        self.statuses = list(statuses)
        self.seconds = seconds
        self.now = 0.0
        self.bodies: list[bytes] = []

    async def call(self, request: object, _tenant: int) -> AttemptResult:
        self.now += self.seconds
        self.bodies.append(request.body)  # type: ignore[attr-defined]
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return AttemptResult(status, "said the receiver")

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)
