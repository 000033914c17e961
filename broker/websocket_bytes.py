"""A WebSocket as a stream of bytes: for protocols that have messages of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

MAX_REQUEST_BYTES = 16_384
BINARY = Subprotocol("mqtt")
PROTOCOLS = (BINARY, *map(Subprotocol, ("v12.stomp", "v11.stomp", "v10.stomp")))
DATA = frozenset({Opcode.TEXT, Opcode.BINARY, Opcode.CONT})

Read = Callable[[], Awaitable[bytes]]
Write = Callable[[bytes], None]


class WebSocketBytes:
    """The server's side of one WebSocket, on a connection that somebody else reads and writes.

    Browsers may connect from any page: only a token lets a client in, never a cookie.
    """

    def __init__(self, read: Read, write: Write, max_message: int) -> None:
        self._read = read
        self._write = write
        self._protocol = ServerProtocol(
            subprotocols=PROTOCOLS,
            select_subprotocol=_chosen,
            max_size=max_message,
        )
        self._request_bytes = 0

    async def read(self) -> bytes:
        """Return what the client says next, or nothing where it has ended."""
        while True:
            data = await self._read()
            said = self._take(data)
            if said or not data or self._has_ended():
                return said

    def write(self, data: bytes) -> None:
        """Send a message: text, but for MQTT."""
        try:
            if self._protocol.subprotocol == BINARY:
                self._protocol.send_binary(data)
            else:
                self._protocol.send_text(data)
        except InvalidState:
            return  # it is closing
        self._flush()

    def close(self) -> None:
        """Say that this is the end."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(1000)
            self._flush()

    def _take(self, data: bytes) -> bytes:
        if self._protocol.state is State.CONNECTING:
            self._request_bytes += len(data)
            if self._request_bytes > MAX_REQUEST_BYTES:
                return b""
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        said = []
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._protocol.send_response(self._protocol.accept(event))
            elif isinstance(event, Frame) and event.opcode in DATA:
                said.append(bytes(event.data))
        self._flush()
        return b"".join(said)

    def _has_ended(self) -> bool:
        if self._protocol.state is not State.CONNECTING:
            return self._protocol.state is not State.OPEN
        is_refused = self._protocol.handshake_exc is not None
        return is_refused or self._request_bytes > MAX_REQUEST_BYTES

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._write(data)


def _chosen(_protocol: ServerProtocol, offered: list[Subprotocol] | object) -> Subprotocol | None:
    """Return the first of ours that the client offers, if any; old clients offer none."""
    wanted = list(offered) if isinstance(offered, (list, tuple)) else []
    return next((each for each in PROTOCOLS if each in wanted), None)
