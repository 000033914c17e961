"""What comes to delivery's port and is no request costs next to nothing: no server is asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from delivery.admission.pending import PendingConnections
from delivery.transports.doorway import MAX_LINE_BYTES, Doorway

NONSENSE = b"\x10\xff\xff\xff\x7f" + bytes(range(256)) * 8 + b"\r\n\r\n"


class Transport:
    """Notes what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.protocol: Any = None
        self._is_closing = False

    def get_extra_info(self, _name: str) -> tuple[str, int]:
        return ("127.0.0.1", 1)

    def write(self, content: bytes) -> None:
        self.written += content

    def close(self) -> None:
        self._is_closing = True

    def is_closing(self) -> bool:
        return self._is_closing

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def pause_reading(self) -> None:
        pass

    resume_reading = abort = pause_reading


class Server(asyncio.Protocol):
    """Notes what it gets."""

    def __init__(self) -> None:
        self.said = b""

    def data_received(self, data: bytes) -> None:
        self.said += data


def come(*said: bytes) -> tuple[Transport, list[Server], list[Server]]:
    """What becomes of a connection that says this: and who is asked, for HTTP and WebSockets."""
    plain, sockets = list[Server](), list[Server]()

    def made(where: list[Server]) -> Server:
        where.append(Server())
        return where[-1]

    async def run() -> Transport:
        transport: Any = Transport()
        door = Doorway(PendingConnections(10), lambda: made(plain), lambda: made(sockets))
        door.connection_made(transport)
        for each in said:
            (transport.protocol or door).data_received(each)
            await asyncio.sleep(0.01)
        if transport.is_closing():
            door.eof_received()
            door.connection_lost(None)
        found: Transport = transport
        return found

    return asyncio.run(run()), plain, sockets


@pytest.mark.parametrize(
    "said", [(NONSENSE,), (b"x" * (MAX_LINE_BYTES + 1),), (b"\n",), (b"GET /\r\n",)]
)
def test_what_is_no_request_is_answered_at_once(said: tuple[bytes, ...]) -> None:
    transport, plain, sockets = come(*said)

    assert transport.written.startswith(b"HTTP/1.1 400 ")
    assert transport.is_closing()
    assert (plain, sockets) == ([], [])


@pytest.mark.parametrize("line", [b"GET /a/streams/s/live HTTP/1.1\r\n", b"GET //[/x HTTP/1.0\n"])
def test_every_other_request_is_one_for_the_server_of_sockets(line: bytes) -> None:
    transport, plain, sockets = come(line[:3], line[3:], b"Host: x\r\n")

    assert [each.said for each in sockets] == [line + b"Host: x\r\n"]
    assert (plain, transport.written) == ([], b"")
