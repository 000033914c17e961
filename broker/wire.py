"""The bytes between us and a client, over TCP or in WebSocket messages."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from broker.errors import TooLarge
from broker.turns import MAX_STRANGERS_BYTES, Part, Turns
from broker.websocket_bytes import WebSocketBytes

SYSTEM_BUFFER_BYTES = 128 * 1024
READ_BYTES = 65_536
WEBSOCKET_READ_BYTES = 4_096
MAX_UNTIL = 65_536
"""So far the end of something is looked for."""


class Wire:
    """A connection, and a Caller. Reading waits, writing does not."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        transport: asyncio.WriteTransport,
        turns: Turns | None = None,
    ) -> None:
        """Without `turns` nobody else is kept waiting by it: it is a connection of our own."""
        self.address = str((transport.get_extra_info("peername") or [""])[0])
        self.part = Part(turns, self.address) if turns is not None else None
        """What it has of the loop."""
        self._reader = reader
        self._transport = transport
        self._websocket: WebSocketBytes | None = None
        self._buffer = bytearray()
        self._when_lost: list[Callable[[], None]] = []
        self._is_lost = False
        self._socket = transport.get_extra_info("socket")
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SYSTEM_BUFFER_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def become_websocket(self, max_message: int) -> None:
        """Read and write WebSocket messages from now on; what was read already is the first."""
        first = bytes(self._buffer)
        self._buffer.clear()

        async def read() -> bytes:
            nonlocal first
            if first:
                data, first = first, b""
                return data
            # Its frames are taken apart at once, and may be of six bytes each.
            if self.part is not None:
                await self.part.frame()
            return await self._reader.read(WEBSOCKET_READ_BYTES)

        self._websocket = WebSocketBytes(read, self._transport.write, max_message)

    async def begin_frame(self) -> None:
        """Return when it may be this client's turn to have a frame worked on. Raises TooLarge."""
        if self.part is None:
            return
        if self.part.tenant is None and self.part.strange_bytes > MAX_STRANGERS_BYTES:
            raise TooLarge("say who you are before you say so much")
        await self.part.frame()

    async def last_turn(self) -> None:
        """Return when it is this client's turn to be forgotten: that takes time, too."""
        if self.part is not None:
            await self.part.next_turn()

    def pass_over(self, skipped: bytes) -> None:
        """Leave out all bytes of these kinds that have come, and are next."""
        self._buffer = self._buffer.lstrip(skipped)

    async def peek(self) -> bytes:
        """Return the next byte, and leave it there. Raises IncompleteReadError at the end."""
        while not self._buffer:
            await self._fill()
        return bytes(self._buffer[:1])

    async def readexactly(self, size: int) -> bytes:
        """Return so many bytes. Raises IncompleteReadError at the end."""
        while len(self._buffer) < size:
            await self._fill()
        return self._take(size)

    async def readuntil(self, end: bytes) -> bytes:
        """Return all up to the end of something. Raises TooLarge, IncompleteReadError."""
        looked = 0
        while (place := self._buffer.find(end, looked)) < 0:
            looked = len(self._buffer)
            if looked > MAX_UNTIL:
                raise TooLarge(f"the end of something is not within {MAX_UNTIL} bytes")
            await self._fill()
        return self._take(place + 1)

    def write(self, data: bytes) -> None:
        """Write; what the client does not take at once waits."""
        if self._transport.is_closing():
            return
        if self._websocket is None:
            self._transport.write(data)
        else:
            self._websocket.write(data)

    def unsent_bytes(self) -> int:
        """Return what waits."""
        return self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Close when what was written is sent."""
        if self._websocket is not None and not self._transport.is_closing():
            self._websocket.close()
        self._transport.close()

    def abort(self) -> None:
        """Cut the connection; harmless where it is lost already."""
        if self._socket.fileno() >= 0:
            self._transport.abort()

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Call this once when the connection is lost; at once, if it is lost already."""
        if self._is_lost:
            callback()
        else:
            self._when_lost.append(callback)

    def lost(self) -> None:
        """Note that the connection is lost."""
        self._is_lost = True
        while self._when_lost:
            self._when_lost.pop()()

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    async def _fill(self) -> None:
        if self._websocket is None:
            data = await self._reader.read(READ_BYTES)
        else:
            data = await self._websocket.read()
        if not data:
            raise asyncio.IncompleteReadError(bytes(self._buffer), None)
        self._buffer += data
        if self.part is not None:
            await self.part.read(len(data))
