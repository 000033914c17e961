"""A TCP proxy in front of Postgres that knows where in a transaction of the pipeline it is.

The programs under test know nothing of it: it is where their settings say Postgres is.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

from psycopg2.extensions import parse_dsn

STORE = b"EXECUTE fence"
"""How the pipeline's storing message is told from all others."""

UPDATES = (b"COPY stored_updates", b"EXECUTE store_updates")
"""What a storing message has in it that stores updates, not only progress."""

Fault = Callable[[str, bytes], int | None]
"""Called with a point of storing updates, and the message that is on its way then: "before"
Postgres has any of it, "half" when it is to get the updates, "inside" when it has all and has
not answered, "committed" when it has answered and the pipeline does not know yet. None lets
the message pass; a number lets that many more bytes through and then cuts the connection.

A transaction may also be of several messages. So there is "asked" before any message at all, and
"stored" with all messages of a storing transaction when its end has been answered."""


def nothing(_point: str, _statement: bytes) -> None:
    """No fault."""


class PostgresProxy:
    """Passes connections on to the Postgres of a DSN; `fault` decides at every point."""

    def __init__(self, dsn: str) -> None:
        parts = parse_dsn(dsn)
        self._server = (parts["host"], int(parts["port"]))
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        options = "sslmode=disable&gssencmode=disable"
        self.dsn = (
            f"postgresql://{parts['user']}:{parts['password']}@127.0.0.1:{port}"
            f"/{parts['dbname']}?{options}"
        )
        self.fault: Fault = nothing
        self.stores = 0
        """storing messages seen"""
        self._connections: list[_Connection] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def release_locks(self) -> None:
        """Have every session give up its advisory locks, without its program knowing."""
        for each in self._connections:
            each.slip_in(b"SELECT pg_advisory_unlock_all()")

    def close(self) -> None:
        """Accept nobody any more and cut all connections."""
        self._listener.close()
        for each in self._connections:
            each.cut()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:  # Postgres is down, and its clients shall see that
                client.close()
                continue
            self._connections.append(_Connection(self, client, server))


class _Connection:
    def __init__(self, proxy: PostgresProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._idle = threading.Event()
        self._swallow = threading.Event()
        self._turn = threading.Lock()
        self._statement = b""
        self._transaction: list[bytes] | None = None
        """the storing messages since BEGIN; None: outside of one"""
        self._ending = b""
        self._alive = True
        for each in (self._up, self._down):
            threading.Thread(target=self._guarded, args=(each,), daemon=True).start()

    def slip_in(self, sql: bytes) -> None:
        """Run a statement in this session while its client waits for nothing."""
        while self._alive:
            self._idle.wait()
            with self._turn:
                if not self._idle.is_set():  # rows of a COPY may be on their way
                    continue
                self._idle.clear()
                self._swallow.set()
                body = sql + b"\0"
                self._server.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
                self._idle.wait()
                return

    def cut(self) -> None:
        # A thread that waits for a socket keeps it open beyond close(), and with it the
        # session and its locks; shutdown() wakes it.
        self._alive = False
        for each in (self._client, self._server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _guarded(self, pump: Callable[[], Any]) -> None:
        try:
            pump()
        except OSError:
            pass
        finally:
            self._alive = False
            self._idle.set()
            for each in (self._client, self._server):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _up(self) -> None:
        """From the program to Postgres, statement by statement."""
        startup = _exactly(self._client, 4)
        self._server.sendall(startup + _exactly(self._client, struct.unpack("!i", startup)[0] - 4))
        for kind, message in _messages(self._client):
            with self._turn:
                if kind == b"Q":
                    self._idle.clear()
                    if self._proxy.fault("asked", message) is not None:
                        return
                    self._note(message)
                    if STORE in message and any(each in message for each in UPDATES):
                        self._proxy.stores += 1
                        self._statement = message
                for point in self._points(kind, message):
                    passed = self._proxy.fault(point, message)
                    if passed is not None:
                        self._server.sendall(message[:passed])
                        return
                self._server.sendall(message)
                ends = b"c" if UPDATES[0] in self._statement else b"Q"
                stores = bool(self._statement) and kind == ends
                if stores and self._proxy.fault("inside", message) is not None:
                    return

    def _note(self, message: bytes) -> None:
        """Keep what a transaction that stores has had so far."""
        text = message[5:].lstrip().upper()
        if text.startswith(b"BEGIN"):
            self._transaction = []
        elif self._transaction is None:
            self._ending = message if STORE in message else b""
        elif text.startswith((b"COMMIT", b"ROLLBACK")):
            self._ending = b"".join(self._transaction) if text.startswith(b"COMMIT") else b""
            self._transaction = None
        elif self._transaction or STORE in message:
            self._transaction.append(message)

    def _points(self, kind: bytes, message: bytes) -> tuple[str, ...]:
        """What points of storing come just before this message; rows are in one of their own."""
        if not self._statement or kind not in (b"Q", b"d"):
            return ()
        if kind == b"d":
            return ("half",)
        return ("before",) if UPDATES[0] in message else ("before", "half")

    def _down(self) -> None:
        """From Postgres to the program."""
        for kind, message in _messages(self._server):
            if self._swallow.is_set():
                if kind == b"Z":
                    self._swallow.clear()
                    self._idle.set()
                continue
            if kind == b"Z":
                statement, self._statement = self._statement, b""
                if statement and self._proxy.fault("committed", statement) is not None:
                    return
                ending, self._ending = self._ending, b""
                if ending and self._proxy.fault("stored", ending) is not None:
                    return
                self._idle.set()
            self._client.sendall(message)


def _messages(connection: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    while True:
        head = _exactly(connection, 5)
        yield head[:1], head + _exactly(connection, struct.unpack("!i", head[1:])[0] - 4)


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        more = connection.recv(min(1 << 16, size - len(found)))
        if not more:
            raise ConnectionResetError
        found += more
    return bytes(found)
