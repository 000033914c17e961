"""One HTTP request on a connection, and its answer: in one piece, or as long as the client stays.

A connection serves one request, so nothing of one is ever taken for another.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import cast

from delivery.admission.pending import STRANGERS_PIECE, PendingConnections
from delivery.admission.refusals import Refusal
from delivery.transport import Disconnected
from delivery.transports.pieces import Pieces
from servioticy.http_heads import MAX_HEAD, Head, Malformed, parse

REQUEST_SECONDS = 10.0
"""Within these a request has to be there, with its body."""
LINGER_SECONDS = 10.0
"""Within these an answer has to be taken."""
MAX_BODY = 4096
END = b"\r\n\r\n"
SYSTEM_BUFFER_BYTES = 128 * 1024
WRITE_BUFFER_BYTES = 64 * 1024

COMMON_HEADERS = {
    "Server": "api.servIoTicy",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Connection": "close",
    # Only a token lets a client in, never a cookie: a foreign page has nothing to ride on.
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Last-Event-ID, Cache-Control",
    "Access-Control-Expose-Headers": "Retry-After, Allow",
    "Access-Control-Max-Age": "86400",
}

log = logging.getLogger("servioticy.delivery")


class HttpCall(asyncio.Protocol):
    """A client's connection, from its request to the end of the answer."""

    def __init__(
        self,
        pending: PendingConnections,
        serve: Callable[[HttpCall, Head, bytes], Awaitable[None]],
    ) -> None:
        self.address = ""
        self.written_bytes = 0
        self._pending = pending
        self._serve = serve
        self._said = bytearray()
        self._looked = self._begins = 0
        """How far the end of the head has been looked for; where the body begins."""
        self._head: Head | None = None
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport
        self._pieces: Pieces
        self._timer: asyncio.TimerHandle
        self._is_lost = False
        self._when_lost: list[Callable[[], None]] = []
        self._room = asyncio.Event()
        self._room.set()

    # What a caller has to be able to do

    def abort(self) -> None:
        """End the connection at once."""
        self._transport.abort()

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Call this once when the connection is lost; at once, if it is lost already."""
        if self._is_lost:
            callback()
        else:
            self._when_lost.append(callback)

    # What comes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note who has connected."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        self.address = str((transport.get_extra_info("peername") or [""])[0])
        # The system would let it grow to megabytes, of its own memory, for whoever does not read.
        transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDBUF, SYSTEM_BUFFER_BYTES
        )
        self._pieces = Pieces(
            self._transport,
            self.address,
            self._pending.turns,
            STRANGERS_PIECE,
            self._hear,
            lambda: True,
        )
        self._pending.connected(self)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(REQUEST_SECONDS, self.abort)

    def connection_lost(self, _exc: Exception | None) -> None:
        """End what is done for the client, and call all who wanted to know."""
        self._is_lost = True
        self._timer.cancel()
        self._room.set()
        if self._task is not None:
            self._task.cancel()
        self._pending.disconnected(self)
        self._pieces.end()
        while self._when_lost:
            self._when_lost.pop()()

    def data_received(self, data: bytes) -> None:
        """Read the request; whoever says more is not listened to."""
        self._pieces.add(data)

    def _hear(self, data: bytes) -> None:
        self._said += data
        if self._task is not None:
            if len(self._said) > MAX_HEAD + MAX_BODY:
                self.abort()
            return
        try:
            self._read()
        except Malformed as error:
            self._said.clear()
            self._begin(self._refuse(Refusal(error.status, str(error))))

    def _read(self) -> None:
        if self._head is None:
            # Not from the beginning each time: it may come byte by byte.
            end = self._said.find(END, max(0, self._looked - len(END)))
            self._looked = len(self._said)
            if end < 0 or end > MAX_HEAD:
                if self._looked > MAX_HEAD:
                    raise Malformed(431, "The request is too long")
                return
            self._head = parse(bytes(self._said[:end]))
            self._begins = end + len(END)
        if self._head.chunked:
            raise Malformed(411, "The body has to come with its length")
        if self._head.length > MAX_BODY:
            raise Malformed(413, f"The body has more than {MAX_BODY} bytes")
        ends = self._begins + self._head.length
        if len(self._said) >= ends:
            body = bytes(self._said[self._begins : ends])
            self._begin(self._serve(self, self._head, body))

    def _begin(self, work: Awaitable[None]) -> None:
        self._timer.cancel()
        self._pending.remove(self)
        self._task = asyncio.ensure_future(self._run(work))

    async def _run(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Disconnected:
            self.abort()
        except Exception:
            log.exception("call_failed")
            self.abort()

    async def _refuse(self, refusal: Refusal) -> None:
        self.refuse(refusal)

    # What goes

    def refuse(self, refusal: Refusal) -> None:
        """Answer why not."""
        self.answer(refusal.status, refusal.body(), refusal.headers())

    def answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Answer in one piece, and close."""
        length = {"Content-Length": str(len(body)), "Content-Type": "application/json"}
        self.begin(status, (length if body else {"Content-Length": "0"}) | dict(headers or {}))
        self.write(body)
        self.close()

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Write the head of an answer."""
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
        lines += [f"{name}: {value}" for name, value in (COMMON_HEADERS | dict(headers)).items()]
        self.write("\r\n".join([*lines, "", ""]).encode())

    def write(self, data: bytes) -> None:
        """Begin to send, and do not wait."""
        if not self._is_lost:
            self.written_bytes += len(data)
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait until there is room for more. Raises Disconnected."""
        if not self._room.is_set():
            await self._room.wait()
        if self._is_lost:
            raise Disconnected

    def unsent_bytes(self) -> int:
        """Return how much waits because the client has not taken it yet."""
        return 0 if self._is_lost else self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Close when the client has taken all; it counts as pending until it has gone."""
        if not self._is_lost:
            self._transport.close()
            self._pending.add(self)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(LINGER_SECONDS, self._transport.abort)

    def pause_writing(self) -> None:
        """Note that the client takes too little."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Note that there is room again."""
        self._room.set()
