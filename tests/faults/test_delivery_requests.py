"""Requests for a WebSocket that are too long, too late, or no requests at all."""

from __future__ import annotations

import contextlib
import socket

import pytest
from support.running_delivery import (
    RunningDelivery,
    a_request,
    received,
    status,
)

from delivery.transports import doorway, websocket
from delivery.transports.websocket_caller import MAX_REQUEST_BYTES


@pytest.mark.parametrize("begin", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nA: b\r\n"])
def test_a_request_has_to_be_made_in_time(monkeypatch, begin: bytes) -> None:
    monkeypatch.setattr(doorway, "FIRST_LINE_SECONDS", 0.2)
    monkeypatch.setattr(websocket, "HANDSHAKE_SECONDS", 0.2)
    with RunningDelivery() as running:
        assert received(running.plain(begin)) == b""
        running.until(lambda: running.pending == 0)


TARGETS = [
    ("//[/x", 400),
    ("http://[/pump/streams/flow/live", 400),
    ("/pump/streams/flow/live?after=" + "9" * 4000, 400),
    ("/%00/streams/%ff/live", 101),
    ("/" + "x" * 9000, 414),
    ("/é/streams/flow/live", 400),
    ("", 400),
    ("*", 404),
    ("/pump/streams/flow/live HTTP/1.1 x", 400),
    ("/health\0", 404),
]


@pytest.mark.parametrize(("target", "expected"), TARGETS, ids=[each[0][:20] for each in TARGETS])
def test_whatever_is_asked_for_is_not_our_mistake(target: str, expected: int) -> None:
    with RunningDelivery() as running:
        client = running.plain(a_request(target))
        answer = client.recv(65_536)
        client.close()

        assert int(answer.split(b" ", 2)[1]) == expected


@pytest.mark.parametrize(
    "sent", [b"\r\n", b"\0\xff\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\n", b": \n"]
)
def test_what_is_no_request_at_all_is_answered_and_closed(sent: bytes) -> None:
    with RunningDelivery() as running:
        client = running.plain(sent)
        client.shutdown(socket.SHUT_WR)

        assert status(client) == 400


def test_a_request_may_have_so_many_bytes_and_no_more() -> None:
    """In lines each of which would pass."""
    bare = len(a_request("/pump/streams/flow/live"))

    def padded(missing: int) -> bytes:
        lines = "".join(f"A: {'x' * 995}\r\n" for _ in range(missing // 1000 - 1))
        last = missing - len(lines)
        return a_request("/pump/streams/flow/live", more=lines + f"B: {'x' * (last - 5)}\r\n")

    with RunningDelivery() as running:
        for size, expected in ((MAX_REQUEST_BYTES, b" 101 "), (MAX_REQUEST_BYTES + 1, b" 431 ")):
            request = padded(size - bare)
            assert len(request) == size
            client = running.plain(request)
            assert expected in client.recv(100)
            client.close()
        endless = running.plain(b"GET / HTTP/1.1\r\n")
        with contextlib.suppress(OSError):
            for _ in range(100):
                endless.sendall(b"A: b\r\n" * 1000)
        endless.close()
        running.until(lambda: running.pending == 0)
