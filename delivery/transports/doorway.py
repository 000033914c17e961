"""One port for two protocols: the first line of a request says whom its connection is for."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from typing import cast

from delivery.admission.pending import PendingConnections
from delivery.transports.pieces import Pieces

FIRST_LINE_SECONDS = 10.0
MAX_LINE_BYTES = 16 * 1024

_PLAIN_HTTP = re.compile(
    rb"[A-Z]{1,16} [^ ?]*/(?:events|updates|acknowledgements|position)/?(?:\?[^ ]*)? "
    rb"HTTP/1\.[01]\r?"
)
"""Every other request is answered by the WebSockets' server, as it always was."""
_REQUEST = re.compile(rb"[A-Z]{1,16} [^ ]+ HTTP/[0-9.]{1,4}\r?")
NO_REQUEST = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 27\r\n\r\nThis is no HTTP/1.1 request"
)
"""What is none costs next to nothing: the WebSockets' server would take a millisecond for it."""


class Doorway(asyncio.Protocol):
    """A connection of which nothing is known yet; what it says goes to another protocol."""

    def __init__(
        self,
        pending: PendingConnections,
        plain: Callable[[], asyncio.Protocol],
        websocket: Callable[[], asyncio.Protocol],
    ) -> None:
        self.address = ""
        self._pending = pending
        self._plain = plain
        self._websocket = websocket
        self._said = b""
        self._is_handed_over = False
        self._transport: asyncio.Transport
        self._pieces: Pieces
        self._timer: asyncio.TimerHandle

    def abort(self) -> None:
        """End the connection at once."""
        self._transport.abort()

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Nobody waits for this: it is admitted to nothing."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait a while for the first line."""
        self._transport = cast(asyncio.Transport, transport)
        self.address = str((transport.get_extra_info("peername") or [""])[0])
        self._pieces = Pieces(
            self._transport,
            self.address,
            self._pending.turns,
            sys.maxsize,  # all of it: it is only looked at
            self._hear,
            lambda: not self._is_handed_over,
        )
        self._pending.connected(self)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(FIRST_LINE_SECONDS, self.abort)

    def connection_lost(self, _exc: Exception | None) -> None:
        """Forget it."""
        self._timer.cancel()
        self._pending.disconnected(self)
        self._pieces.end()

    def data_received(self, data: bytes) -> None:
        """Hand over what was said as soon as the first line is there."""
        if self._said or b"\n" not in data:
            self._pieces.add(data)
        else:
            self._hear(data)

    def _hear(self, data: bytes) -> None:
        self._said += data
        line, end, _ = self._said.partition(b"\n")
        if not end and len(line) <= MAX_LINE_BYTES:
            return
        if _PLAIN_HTTP.fullmatch(line):
            self._hand_over(self._plain)
        elif _REQUEST.fullmatch(line):
            self._hand_over(self._websocket)
        else:
            self._is_handed_over = True
            self._transport.write(NO_REQUEST)
            self._transport.close()

    def eof_received(self) -> bool | None:
        """Let the WebSockets' server answer what is no whole request."""
        if not self._said or self._transport.is_closing():
            return False
        return self._hand_over(self._websocket).eof_received()

    def _hand_over(self, make: Callable[[], asyncio.Protocol]) -> asyncio.Protocol:
        self._timer.cancel()
        self._pending.disconnected(self)
        self._is_handed_over = True
        self._pieces.end()
        protocol = make()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(self._said)
        return protocol
