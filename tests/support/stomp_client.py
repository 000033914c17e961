"""A small STOMP client over TCP or WebSocket, for one test at a time."""

from __future__ import annotations

import socket
from typing import NamedTuple

from websockets.sync.client import connect
from websockets.typing import Subprotocol

SECONDS = 60.0


class Got(NamedTuple):
    """A frame that came."""

    command: str
    headers: dict[str, str]
    body: bytes


class StompClient:
    """A connection that has sent CONNECT."""

    def __init__(
        self,
        port: int,
        passcode: str = "",
        *,
        login: str = "somebody",
        versions: str = "1.0,1.1,1.2",
        over_websocket: bool = False,
    ) -> None:
        self._socket: socket.socket | None = None
        if over_websocket:
            self._websocket = connect(
                f"ws://127.0.0.1:{port}/stomp",
                subprotocols=[Subprotocol("v11.stomp"), Subprotocol("v10.stomp")],
                proxy=None,
            ).__enter__()
        else:
            self._socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self._buffer = b""
        self.send("CONNECT", {"login": login, "passcode": passcode, "accept-version": versions})
        self.welcome = self.receive()

    def send(self, command: str, headers: dict[str, str], body: bytes = b"") -> None:
        lines = [command, *(f"{name}:{value}" for name, value in headers.items())]
        if body:
            lines.append(f"content-length:{len(body)}")
        frame = "\n".join(lines).encode() + b"\n\n" + body + b"\0"
        if self._socket is not None:
            self._socket.sendall(frame)
        else:
            self._websocket.send(frame.decode(), text=True)

    def receive(self) -> Got:
        """The next frame."""
        self._until(lambda: b"\n\n" in self._buffer.lstrip(b"\n"))
        head, _, rest = self._buffer.lstrip(b"\n").partition(b"\n\n")
        command, *lines = head.decode().split("\n")
        headers = dict(line.split(":", 1) for line in lines)
        self._buffer = rest
        size = int(headers.get("content-length", "0"))
        self._until(lambda: len(self._buffer) > size)
        body, self._buffer = self._buffer[:size], self._buffer[size + 1 :]
        return Got(command, headers, body)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        else:
            self._websocket.close()

    def _until(self, is_there: object) -> None:
        assert callable(is_there)
        while not is_there():
            if self._socket is not None:
                part = self._socket.recv(65_536)
            else:
                said = self._websocket.recv(SECONDS)
                assert isinstance(said, str), "STOMP is text"
                part = said.encode()
            assert part, "the connection has ended"
            self._buffer += part
