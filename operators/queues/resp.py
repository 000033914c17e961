"""What in-memory stores such as Valkey and Redis speak (RESP 2), as much of it as queues need.

Loaded by processes beside programs, which are to be small: nothing but the standard library.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 15.0
"""A store that does not answer within so long is taken for lost."""

MAX_LINE = 64 * 1024
MAX_TEXT = 32 * 1024 * 1024
MAX_MEMBERS = 1_000_000
PORT = 6379
SOCKET_NAME = "socket"
"""Of the socket in the folder of a store on this machine."""

_SCHEMES = {"redis": False, "valkey": False, "rediss": True, "valkeys": True}

Word: TypeAlias = str | bytes | int
Answer: TypeAlias = "bytes | int | list[Answer] | None"


class StoreLost(Exception):
    """The store is not there, or not any more; the message says why."""


class Refused(Exception):
    """The store has answered a command with an error."""


class Address(NamedTuple):
    """Where a store is, and who asks it."""

    host: str = ""
    port: int = PORT
    folder: str = ""
    """of a store on this machine: its socket is in there, and there is no host"""
    user: str = "default"
    password: str = ""
    database: int = 0
    is_encrypted: bool = False
    authorities: str = ""
    """PEM file of those who vouch for it; "": those of the machine"""


def address(url: str, authorities: str = "") -> Address:
    """Parse `redis://USER:PASSWORD@HOST:PORT/DATABASE`, `valkey`, or `rediss`, `valkeys` with TLS.

    Raises ValueError, whose message does not have the password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("no URL of a store: its host or port is none") from None
    database = parts.path.strip("/") or "0"
    if parts.scheme not in _SCHEMES or not host or parts.query or parts.fragment:
        raise ValueError("no URL of a store: redis[s]://[USER:PASSWORD@]HOST[:PORT][/DATABASE]")
    if not (database.isascii() and database.isdecimal() and len(database) < 6):
        raise ValueError("no URL of a store: what follows its host is no number of a database")
    return Address(
        host,
        port or PORT,
        "",
        unquote(parts.username or "") or "default",
        unquote(parts.password or ""),
        int(database),
        _SCHEMES[parts.scheme],
        authorities,
    )


class Connection:
    """A connection to a store. Not for several threads, but for `interrupt`."""

    def __init__(self, place: Address, seconds: float = CONNECT_SECONDS) -> None:
        """Connect and say who we are. Raises StoreLost, Refused."""
        try:
            self._socket = _connected(place, seconds)
        except (OSError, ValueError) as error:  # ssl has errors of both kinds
            raise StoreLost(f"the store is not there: {error}") from error
        self._stream = self._socket.makefile("rb", MAX_LINE)
        try:
            if place.password:
                self.call("AUTH", place.user, place.password)
            if place.database:
                self.call("SELECT", place.database)
        except BaseException:
            self.close()
            raise

    def call(self, *words: Word, seconds: float = ANSWER_SECONDS) -> Answer:
        """Return the answer to a command. Raises StoreLost, Refused."""
        return self.calls([words], seconds)[0]

    def calls(
        self, commands: Sequence[Sequence[Word]], seconds: float = ANSWER_SECONDS
    ) -> list[Answer]:
        """Return the answers to commands that are sent together. Raises StoreLost, Refused."""
        found: list[Answer] = []
        refused = ""
        try:
            self._socket.settimeout(seconds)
            self._socket.sendall(b"".join(map(_spelt, commands)))
            for _ in commands:
                try:
                    found.append(self._answer())
                except Refused as error:
                    refused = refused or str(error)
        except (OSError, ValueError) as error:
            raise StoreLost(f"the store is lost: {error}") from error
        if refused:
            raise Refused(refused)
        return found

    def interrupt(self) -> None:
        """Let whoever waits for an answer have StoreLost."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Say no more."""
        try:
            self._stream.close()
        finally:
            self._socket.close()

    def _answer(self, depth: int = 0) -> Answer:
        line = self._stream.readline(MAX_LINE)
        if not line.endswith(b"\r\n"):
            raise ValueError("it has ended" if not line else "it sent too long a line")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise Refused(rest.decode(errors="replace"))
        if kind == b"+":
            return rest
        number = int(rest)
        if kind == b":":
            return number
        if number == -1 and kind in b"$*":
            return None
        if kind == b"$" and 0 <= number <= MAX_TEXT:
            content: bytes = self._stream.read(number + 2)
            if len(content) != number + 2:
                raise ValueError("it has ended")
            return content[:-2]
        if kind == b"*" and 0 <= number <= MAX_MEMBERS and depth < 4:
            return [self._answer(depth + 1) for _ in range(number)]
        raise ValueError("it sent what is no answer")


def _spelt(words: Sequence[Word]) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        content = word if isinstance(word, bytes) else str(word).encode()
        parts += b"$%d\r\n" % len(content), content, b"\r\n"
    return b"".join(parts)


def _connected(place: Address, seconds: float) -> socket.socket:
    if place.folder:
        return _connected_in(place.folder, seconds)
    found = socket.create_connection((place.host, place.port), seconds)
    try:
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not place.is_encrypted:
            return found
        import ssl  # only where it is needed: it takes longer to load than all else here

        context = ssl.create_default_context(cafile=place.authorities or None)
        return context.wrap_socket(found, server_hostname=place.host)
    except BaseException:
        found.close()
        raise


def _connected_in(folder: str, seconds: float) -> socket.socket:
    """Connect through a descriptor of the folder: its path may be longer than a socket's may."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    found = socket.socket(socket.AF_UNIX)
    try:
        found.settimeout(seconds)
        found.connect(f"/proc/self/fd/{descriptor}/{SOCKET_NAME}")
    except BaseException:
        found.close()
        raise
    finally:
        os.close(descriptor)
    return found
