"""What a client may say before and after its WebSocket opens; whoever says more is cut off."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import InvalidMessage
from websockets.protocol import Event

from delivery.admission.pending import STRANGERS_PIECE, PendingConnections
from delivery.transports.pieces import Pieces
from delivery.turns import Turns

MAX_REQUEST_BYTES = 16 * 1024
"""So long may the request line and all headers together be."""
PIECE = 512
"""Bytes of a turn of who is let in: some eighty pings."""
SYSTEM_BUFFER_BYTES = 128 * 1024
BURST_BYTES = 16 * 1024
BYTES_A_SECOND = 256
"""So much may a client say once its socket is open: pings, pongs, and the end."""
SPEAKING_BURST_BYTES = 1024 * 1024
SPEAKING_BYTES_A_SECOND = 64 * 1024
"""So much one that subscribes over its socket."""


class WebSocketCaller(ServerConnection):
    """A client's connection, from its first byte on, before and after the upgrade."""

    _pending: PendingConnections
    _turns: Turns
    _pieces: Pieces

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.address = ""
        self._request_bytes = 0
        self._answered = False
        self._burst, self._rate = BURST_BYTES, BYTES_A_SECOND
        self._allowance = float(BURST_BYTES)
        self._heard_at = 0.0
        self._when_lost: list[Callable[[], None]] = []

    def abort(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Call this once when the connection is lost; at once, if it is lost already."""
        if self.connection_lost_waiter.done():
            callback()
        else:
            self._when_lost.append(callback)

    def let_speak(self) -> None:
        """Let the client say what it wants to subscribe to."""
        self._burst, self._rate = SPEAKING_BURST_BYTES, SPEAKING_BYTES_A_SECOND
        self._allowance = float(self._burst)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note who has connected."""
        super().connection_made(transport)
        self.address = str((transport.get_extra_info("peername") or [""])[0])
        # The system would let it grow to megabytes, of its own memory, for whoever does not read.
        transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDBUF, SYSTEM_BUFFER_BYTES
        )
        self._pieces = Pieces(
            self.transport,
            self.address,
            self._pending.turns,
            STRANGERS_PIECE,
            self._hear,
            self._may_read,
        )
        self._pending.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Call all who wanted to know."""
        super().connection_lost(exc)
        self._pending.disconnected(self)
        self._pieces.end()
        self.protocol.parser.close()
        for error in (self.protocol.handshake_exc, self.protocol.parser_exc):
            _forget_where(error)
        while self._when_lost:
            self._when_lost.pop()()

    def be_of(self, tenant: int) -> None:
        """Take the tenant's turns from now on: the client is let in."""
        self._pieces.be_of(tenant, self._turns, PIECE)

    def data_received(self, data: bytes) -> None:
        """Read what the client says; whoever says too much is not listened to."""
        if self.request is not None and not self._may_say(len(data)):
            self.transport.abort()
        else:
            self._pieces.add(data)

    def _may_read(self) -> bool:
        """Return whether what was said last has been heard: else it is the base class that has
        stopped to read."""
        return self.request is None or not self.recv_messages.paused

    def _hear(self, data: bytes) -> None:
        if self.request is not None:
            super().data_received(data)
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
        """Handle what was read; the first event is the whole request."""
        self._pending.remove(self)
        super().process_event(event)

    def send_data(self) -> None:
        """Write what is to be sent; what was no HTTP at all gets an answer, too."""
        wrong = isinstance(self.protocol.handshake_exc, InvalidMessage)
        if wrong and self._request_bytes and not self._answered:
            self._answered = True
            self.transport.write(_BAD_REQUEST)
        super().send_data()

    def _may_say(self, size: int) -> bool:
        now = time.monotonic()
        self._allowance += (now - self._heard_at) * self._rate
        self._allowance = min(self._allowance, self._burst) - size
        self._heard_at = now
        return self._allowance >= 0


def caller_class(pending: PendingConnections, turns: Turns) -> type[WebSocketCaller]:
    """Return the class of connections that are counted there while they are pending, and take
    these turns afterwards."""

    class CountedCaller(WebSocketCaller):
        _pending = pending
        _turns = turns

    return CountedCaller


def _forget_where(error: BaseException | None) -> None:
    """Let an error be without the frames that it came through: they hold the connection."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


_BAD_REQUEST = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n"
    b"Server: api.servIoTicy\r\n\r\n"
)
