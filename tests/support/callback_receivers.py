"""Receivers of HTTP callbacks on loopback, as good or bad as a test wants them, and feeds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Self

from delivery.backlog import Backlog
from delivery.fanout import FanOut, LiveUpdate
from delivery.feeds.feed import Feed
from servioticy.domain.model import LastUpdate, StreamKey, StreamRef
from servioticy.domain.records import Position
from servioticy.ports.cursors import DurableSubscription, StoredCursor

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
