"""What one WebSocket with many subscriptions is sent: frames, and how much of them waits."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import orjson

from delivery.backlog import Backlog
from delivery.feeds.event_ids import EventId

STALL_SECONDS = 30.0


class Socket(Protocol):
    """An open WebSocket."""

    async def send_frame(self, frame: bytes) -> None:
        """Send a frame of text, and wait until there is room for more. Raises Disconnected."""

    def unsent_bytes(self) -> int:
        """Return how much waits because the client has not taken it yet."""

    def abort(self) -> None:
        """End it at once."""


class LiveOutlet:
    """Sends frames, each with the subscription that it is about."""

    def __init__(self, tenant: int, socket: Socket, backlog: Backlog) -> None:
        self.tenant = tenant
        self._socket = socket
        self._backlog = backlog
        self.sent_bytes = 0
        self._taken_bytes = 0
        self._taken_at = asyncio.get_running_loop().time()

    async def tell(self, id_: str | None, what: str, more: dict[str, Any]) -> None:
        """Say something about a subscription. Raises Disconnected."""
        await self.send(orjson.dumps({"id": id_, "is": what} | more))

    async def tell_begun(self, id_: str, begins: EventId | None) -> None:
        """Say that it has begun, and behind which event. Raises Disconnected."""
        await self.tell(id_, "subscribed", {} if begins is None else {"event": str(begins)})

    def something_waits(self) -> int:
        """Return 1 where the client has not taken all: so much a feed has to know of it. The
        bytes are the socket's."""
        return int(self._socket.unsent_bytes() > 0)

    def abort(self) -> None:
        """End the socket at once."""
        self._socket.abort()

    async def send(self, frame: bytes) -> None:
        """Send a frame. Raises Disconnected."""
        self.sent_bytes += len(frame)
        await self._socket.send_frame(frame)
        if self._socket.unsent_bytes():
            self._backlog.update(self)

    def close(self) -> None:
        """Nothing waits any more: the socket is closed."""
        self._backlog.remove(self)

    # As one for whom something is kept

    def kept_bytes(self) -> int:
        """Return how many bytes wait for the client."""
        return self._socket.unsent_bytes()

    def drop(self) -> None:
        """Cut it off: too much waits for it."""
        self._socket.abort()

    def check_progress(self, now: float) -> None:
        """Cut it off where it has taken nothing for too long."""
        unsent = self._socket.unsent_bytes()
        taken = self.sent_bytes - unsent
        if not unsent or taken > self._taken_bytes:
            self._taken_bytes, self._taken_at = taken, now
        elif now - self._taken_at >= STALL_SECONDS:
            self._socket.abort()
