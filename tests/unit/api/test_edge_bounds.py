"""Connections that say nothing, or too much ahead: what they take of the edge is bounded."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from edge_builders import SECONDS, Serving, Told, everything
from memory import MemoryPlatform
from waiting import until

from api.edge.connection import State
from api.edge.incoming import MAX_AHEAD
from servioticy.doors.door import PAUSE_SECONDS


def test_what_is_sent_ahead_is_not_read_before_it_is_wanted(
    serve: Callable[..., Serving], app: Told
) -> None:
    """And all of it is answered in the end: far more than is read at once, in one go."""
    serving = serve()
    blocked, client = serving.connect(), serving.connect()
    blocked.sendall(b"GET /block HTTP/1.1\r\nHost: x\r\n\r\n")
    until(lambda: len(app.inside) == 1)
    requests = [
        b"GET /block?%d HTTP/1.1\r\nHost: x\r\nX: %b\r\n\r\n" % (n, b"x" * 900) for n in range(200)
    ]
    sending = threading.Thread(target=client.sendall, args=(b"".join(requests),), daemon=True)
    sending.start()
    until(lambda: len(app.inside) == 2)
    (connection,) = (each for each in serving.edge._connections if each.has_more())
    until(lambda: not connection._reading)

    assert 0 < connection._incoming.size() <= MAX_AHEAD
    assert serving.edge.budget._all == connection._incoming.size()
    app.gate.set()
    answers = b""
    while answers.count(b"HTTP/1.1 200") < len(requests):
        answers += client.recv(65_536)
    shown = [int(each[:4].rstrip(b"HT")) for each in answers.split(b"\r\n\r\n")[1:]]
    assert shown == list(range(200))
    until(lambda: not serving.edge.budget._all)


def test_a_client_that_has_sent_ahead_and_goes_is_noticed(
    serve: Callable[..., Serving], app: Told, platform: MemoryPlatform
) -> None:
    """As soon as nothing of it is ahead any more, and not when its answer is to be sent."""
    platform.state.log[0].append(b"not stored yet")
    serving = serve(read_wait_seconds=2 * SECONDS)
    client = serving.connect()
    client.sendall(b"GET /block HTTP/1.1\r\nHost: x\r\n\r\n")
    until(lambda: len(app.inside) == 1)
    client.sendall(b"GET /waits HTTP/1.1\r\nHost: x\r\n\r\n")
    until(lambda: any(not each._reading for each in serving.edge._connections))
    app.gate.set()
    until(lambda: len(app.inside) == 2)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()

    until(lambda: not serving.edge._connections)


def test_who_sends_ahead_where_there_is_no_room_has_to_send_it_again(
    serve: Callable[..., Serving], app: Told
) -> None:
    """The request under way is answered, and the connection ends."""
    serving = serve(api_held_bytes=4_000)
    client = serving.connect()
    client.sendall(b"GET /block HTTP/1.1\r\nHost: x\r\n\r\n")
    until(lambda: len(app.inside) == 1)
    client.sendall(b"GET /hello HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 1_000)
    until(lambda: not all(each.keeps_alive for each in serving.edge._connections))
    app.gate.set()

    assert everything(client).endswith(b"\r\n\r\nblock")
    assert not serving.edge.budget._all
    assert serving.ask("/hello").read() == b"hello"


def test_half_heads_are_held_up_to_a_share(serve: Callable[..., Serving]) -> None:
    """Of 40,000 bytes an address may hold 10,000: some of these are too many."""
    serving = serve(api_held_bytes=40_000)
    clients = [serving.connect() for _ in range(5)]
    for client in clients:
        client.sendall(b"GET /hello HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 3_000)
    until(lambda: any(each._state is State.CLOSE for each in serving.edge._connections))

    readable = select.select(clients, [], [], SECONDS)[0]
    assert 0 < len(readable) <= 2
    assert all(client.recv(9_999).startswith(b"HTTP/1.1 429 ") for client in readable)
    assert serving.edge.budget._all <= 10_000
    served = next(client for client in clients if client not in readable)
    served.sendall(b"\r\n\r\n")
    assert served.recv(9_999).startswith(b"HTTP/1.1 200 ")


def test_where_there_is_no_room_the_longest_silent_one_goes(
    serve: Callable[..., Serving],
) -> None:
    serving = serve(api_connections=10)
    silent = [serving.connect() for _ in range(10)]
    until(lambda: len(serving.edge._connections) == 10)

    assert serving.ask("/hello").read() == b"hello"
    with contextlib.suppress(ConnectionResetError):
        assert silent[0].recv(1) == b""
    silent[9].sendall(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
    assert silent[9].recv(1000).endswith(b"hello")


class Full(socket.socket):
    """A listening socket in a process that may open no more files, for a while."""

    is_full = True
    asked = 0

    def accept(self) -> Any:
        self.asked += 1
        if self.is_full:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_where_no_file_is_left_a_silent_connection_goes(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    """We neither end nor turn in a circle, and whoever waits comes in."""
    serving = serve()
    silent = [serving.connect() for _ in range(3)]
    until(lambda: len(serving.edge._connections) == 3)
    full = Full(fileno=os.dup(serving.listener.fileno()))
    began = time.monotonic()
    serving.attend_by(full)
    waits = serving.send("/hello")
    with contextlib.suppress(ConnectionResetError):
        assert silent[0].recv(1) == b""
    until(lambda: len(serving.edge._connections) == 0)
    until(lambda: full.asked >= 5)

    assert full.asked <= (time.monotonic() - began) / PAUSE_SECONDS + 1
    full.is_full = False
    assert waits.getresponse().read() == b"hello"
    full.close()
