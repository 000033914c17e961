"""Connections that are no sockets: not yet, or not at all. They may cost next to nothing.

A connection that has said nothing, or was refused and does not go, stands at the door. Where
too many do, the one that has stood longest goes, of the address that has most of them: so
silence never keeps out anybody who speaks.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import InvalidMessage
from websockets.protocol import Event

MAX_REQUEST_BYTES = 16 * 1024
"""Of the request line and all headers together."""
SYSTEM_BUFFER_BYTES = 128 * 1024
BURST_BYTES = 16 * 1024
BYTES_A_SECOND = 256
"""What a client may say once its socket is open: pings, pongs, and the end."""


class Door:
    """Who stands there, by address, in order of coming."""

    def __init__(self, max_standing: int) -> None:
        self._max_standing = max_standing
        self._standing: dict[str, dict[Caller, None]] = {}
        self._count = 0
        self._connected: set[Caller] = set()

    def comes(self, caller: Caller) -> None:
        """Somebody connects, and has said nothing yet."""
        self._connected.add(caller)
        self.stands(caller)

    def goes(self, caller: Caller) -> None:
        """Its connection is gone."""
        self._connected.discard(caller)
        self.leaves(caller)

    def cut_off_everybody(self) -> None:
        """End every connection at once, open sockets included."""
        for caller in list(self._connected):
            caller.transport.abort()

    def stands(self, caller: Caller) -> None:
        """It says nothing (yet), or nothing any more."""
        if caller not in self._connected:
            return
        self._standing.setdefault(caller.address, {})[caller] = None
        self._count += 1
        if self._count > self._max_standing:
            most = max(self._standing.values(), key=len)
            longest = next(iter(most))
            self.leaves(longest)
            longest.transport.abort()

    def leaves(self, caller: Caller) -> None:
        """It stands there no longer; harmless if it did not."""
        standing = self._standing.get(caller.address, {})
        if caller in standing:
            del standing[caller]
            self._count -= 1
            if not standing:
                del self._standing[caller.address]

    def __len__(self) -> int:
        """How many stand there."""
        return self._count


class Caller(ServerConnection):
    """A client's connection, from the first byte on."""

    _door: Door

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.address = ""
        self._request_bytes = 0
        self._answered = False
        self._allowance = float(BURST_BYTES)
        self._heard_at = 0.0
        self._endings: list[Callable[[], None]] = []

    def when_lost(self, ending: Callable[[], None]) -> None:
        """Call this once, when the connection is gone; at once, if it is."""
        if self.connection_lost_waiter.done():
            ending()
        else:
            self._endings.append(ending)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It came."""
        super().connection_made(transport)
        self.address = str((transport.get_extra_info("peername") or [""])[0])
        # The system would let it grow to megabytes, of its own memory, for whoever does not read.
        transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDBUF, SYSTEM_BUFFER_BYTES
        )
        self._door.comes(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        super().connection_lost(exc)
        self._door.goes(self)
        while self._endings:
            self._endings.pop()()

    def data_received(self, data: bytes) -> None:
        """It says something; whoever says too much is not listened to."""
        if self.request is not None:
            if self._may_say(len(data)):
                super().data_received(data)
            else:
                self.transport.abort()
            return
        self._request_bytes += len(data)
        if self._request_bytes <= MAX_REQUEST_BYTES:
            super().data_received(data)
        elif not self._answered:
            self._answered = True
            refusal = self.protocol.reject(431, "The request is too long.\n")
            self.protocol.send_response(refusal)
            self.send_data()

    def process_event(self, event: Event) -> None:
        """The first event is the whole request."""
        self._door.leaves(self)
        super().process_event(event)

    def send_data(self) -> None:
        """Write what is to be sent; what was no HTTP at all gets an answer, too."""
        wrong = isinstance(self.protocol.handshake_exc, InvalidMessage)
        if wrong and self._request_bytes and not self._answered:
            self._answered = True
            self.transport.write(_NO_REQUEST)
        super().send_data()

    def _may_say(self, size: int) -> bool:
        now = time.monotonic()
        self._allowance += (now - self._heard_at) * BYTES_A_SECOND
        self._allowance = min(self._allowance, BURST_BYTES) - size
        self._heard_at = now
        return self._allowance >= 0


def callers_at(door: Door) -> type[Caller]:
    """The kind of connections that come to this door."""

    class CallerAtDoor(Caller):
        _door = door

    return CallerAtDoor


_NO_REQUEST = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n"
    b"Server: api.servIoTicy\r\n\r\n"
)
