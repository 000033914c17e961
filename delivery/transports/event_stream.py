"""Updates as server-sent events: each with an id from which its client goes on without a gap."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import orjson

from delivery.endings import Ending
from delivery.feeds.deliveries import Delivery, FeedEnded
from delivery.feeds.event_ids import EventId, event_id
from delivery.feeds.feed import Feed
from delivery.transports.http_call import HttpCall
from delivery.transports.readers import Reader
from delivery.turns import Turns
from sandbox.revisions import revision_of
from servioticy.domain.records import Position

BEFORE_ALL = -(2**63)
"""Earlier than every timestamp."""

HEARTBEAT_SECONDS = 15.0
STALL_SECONDS = 30.0
RETRY_MS = 2000
"""So long a browser waits before it comes again."""

EVENTS_A_TURN = 16
"""Each of which waits until there is room for the next."""

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    # Proxies that gather answers would keep events until there are many.
    "X-Accel-Buffering": "no",
}


class EventStream:
    """Sends one client what its feed gives."""

    def __init__(
        self,
        call: HttpCall,
        feed: Feed,
        take: Callable[[], Awaitable[Delivery]],
        done: Callable[[Delivery], None],
        render: Callable[[Delivery, EventId], bytes],
        turns: Turns,
    ) -> None:
        self.passed: Callable[[], Position] | None = None
        """Tells where a feed stands that is live and has nothing waiting."""
        self._call = call
        self._feed = feed
        self._take = take
        self._done = done
        self._render = render
        self._turns = turns
        self._last: EventId | None = None
        self._wrote_at = asyncio.get_running_loop().time()
        self._taken_bytes = 0
        self._taken_at = self._wrote_at

    def begin(self, at: EventId | None) -> None:
        """Begin to answer; the client stands there."""
        self._last = at
        place = "" if at is None else f"id: {at}\n"
        self._call.begin(200, HEADERS)
        self._write(f"retry: {RETRY_MS}\n{place}\n".encode())
        self._feed.unsent_bytes = self._call.unsent_bytes

    async def run(self, reader: Reader) -> None:
        """Send until the client has gone, or nothing more comes. Raises Disconnected."""
        try:
            while True:
                delivery = await self._take()
                await self._turns.take(self._feed.tenant)
                self._send(delivery)
                await self._call.drain()
                await self._turn()
        except FeedEnded as ended:
            self._end(ended.ending)
        except asyncio.CancelledError:
            self._end(reader.why())

    async def _turn(self) -> None:
        """Send a few more of those that wait. Raises FeedEnded, Disconnected."""
        for _ in range(EVENTS_A_TURN - 1):
            if not self._feed.waiting:
                return
            self._send(await self._take())
            await self._call.drain()

    def _send(self, delivery: Delivery) -> None:
        self._last = self._id_of(delivery)
        self._write(self._render(delivery, self._last))
        self._done(delivery)

    def _id_of(self, delivery: Delivery) -> EventId:
        """Return the id of an event; where its place is lost, all later than its time comes again.

        The results of windows that have not ended come with later times than those which follow.
        """
        found, revision = event_id(delivery, self._feed.log), revision_of(delivery.update.document)
        if revision is None or revision.is_kept:
            return found
        before = BEFORE_ALL if self._last is None else self._last.timestamp
        return found._replace(timestamp=min(before, found.timestamp))

    def check(self, now: float) -> None:
        """Let a silent client know that we are there; cut off one that takes nothing."""
        unsent = self._call.unsent_bytes()
        taken = self._call.written_bytes - unsent
        if not unsent or taken > self._taken_bytes:
            self._taken_bytes, self._taken_at = taken, now
        elif now - self._taken_at >= STALL_SECONDS:
            self._call.abort()
        if not unsent and now - self._wrote_at >= HEARTBEAT_SECONDS:
            self._write(self._heartbeat())

    def _heartbeat(self) -> bytes:
        """Return a comment; or how far the topic has come, where the client has all of it."""
        last = self._last
        if self.passed is None or last is None or self._feed.waiting or not self._feed.is_live:
            return b":\n\n"
        position = self.passed()
        here = last.position if last.is_of(self._feed.log) else None
        if here is not None and here.partition == position.partition and here > position:
            return b":\n\n"
        self._last = EventId(position, None, last.timestamp, self._feed.log)
        return f"id: {self._last}\n\n".encode()

    def _end(self, ending: Ending) -> None:
        with contextlib.suppress(OSError):
            reason = orjson.dumps({"reason": ending.value})
            self._write(b"event: end\ndata: " + reason + b"\n\n")
        self._call.close()

    def _write(self, data: bytes) -> None:
        self._wrote_at = asyncio.get_running_loop().time()
        self._call.write(data)


def stream_event(delivery: Delivery, at: EventId) -> bytes:
    """Return an update as an event: its data is the update as it was emitted."""
    # In JSON a line ends only between two of its parts, where a space is as good.
    document = delivery.update.document.replace(b"\r", b" ").replace(b"\n", b" ")
    return b"id: %s\ndata: %s\n\n" % (str(at).encode(), document)


def own_event(delivery: Delivery, at: EventId) -> bytes:
    """Return an update as an event that also says of which stream it is."""
    return b"id: %s\ndata: %s\n\n" % (str(at).encode(), described(delivery, at))


def described(delivery: Delivery, at: EventId) -> bytes:
    """Return an update with its id and its stream, as one line of JSON."""
    document = delivery.update.document.replace(b"\r", b" ").replace(b"\n", b" ")
    return orjson.dumps(
        {
            "id": str(at),
            "serviceObject": delivery.stream.service_object,
            "stream": delivery.stream.stream,
            "update": orjson.Fragment(document),
        }
    )
