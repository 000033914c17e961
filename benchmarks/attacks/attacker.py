"""The attacking tenant's tools: requests that are counted, threads and raw sockets, an end."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from benchmarks.connection import ANSWER_SECONDS, Connection, NoAnswer
from servioticy.settings import Settings
from servioticy.settings.places import reachable

ELSEWHERE = "127.0.0.2"
"""A loopback address that no innocent comes from: turns and room of strangers go by address."""


@dataclass(frozen=True, slots=True)
class Place:
    """A platform that runs, and a tenant's token for it."""

    settings: Settings
    token: str
    victim: str = ""
    """The innocent tenant's Service Object, which is public."""

    changed: str = ""
    """Another one of it, public as well, that it changes every second."""

    others: tuple[str, ...] = ()
    """Tokens of more tenants that do what the first one does."""

    innocents: tuple[str, ...] = ()
    """Service Objects of all innocent tenants; they are public."""

    @property
    def host(self) -> str:
        """Where its ports are."""
        return reachable(self.settings.host)


class Attacker:
    """What an attack does, counted in `got`: status codes, names of errors, events."""

    def __init__(self, place: Place, seconds: float) -> None:
        self.place = place
        self.got: Counter[str] = Counter()
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._timestamps = itertools.count(1)
        self._own = threading.local()

    def for_another(self, seconds: float) -> None:
        """From now on there are so many seconds."""
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds until the attack ends."""
        return max(0.0, self._end - time.monotonic())

    def every(self, seconds: float) -> Iterator[int]:
        """0, 1, ... at this pace until the attack ends."""
        for number in itertools.count():
            if not self.left():
                return
            yield number
            time.sleep(min(seconds, self.left()))

    def together(self, threads: int, work: Callable[[int], object], times: int = 10**9) -> None:
        """Call it with 0, 1, ... from so many threads; so often in all, or until the end."""
        numbers = itertools.count()

        def until_the_end() -> None:
            while self.left():
                number = next(numbers)
                if number >= times:
                    return
                work(number)

        started = [threading.Thread(target=until_the_end, daemon=True) for _ in range(threads)]
        for each in started:
            each.start()
        for each in started:
            each.join(self.left())

    def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return status and body of the answer.

        0 where there is none. Each thread has a connection.
        """
        connection = getattr(self._own, "connection", None)
        if connection is None:
            connection = Connection(self.place.settings, self.place.token)
            self._own.connection = connection
        try:
            status, content = connection.request(method, path, body)
        except NoAnswer as error:
            self.got[type(error).__name__] += 1
            time.sleep(0.01)
            return 0, b""
        self.got[f"{method} {status}"] += 1
        return status, content

    def create(self, document: dict[str, Any]) -> str:
        """Return the id of a new Service Object; empty where it is refused."""
        status, body = self.request("POST", "/", orjson.dumps(document))
        return str(orjson.loads(body)["id"]) if status == 201 else ""

    def put(self, service_object: str, value: Any = 1, timestamp: int | None = None) -> int:
        """Send an update of channel `v` of stream `s`; its status."""
        update = {
            "channels": {"v": {"current-value": value}},
            "lastUpdate": next(self._timestamps) if timestamp is None else timestamp,
        }
        return self.request("PUT", f"/{service_object}/streams/s", orjson.dumps(update))[0]

    def open(self, port: int, receive_buffer: int = 0, come_from: str = "") -> socket.socket:
        """Return a bare connection, from another address of this machine where one is named.

        Raises OSError.
        """
        plain = socket.socket()
        if come_from:
            plain.bind((come_from, 0))
        plain.settimeout(ANSWER_SECONDS)
        if receive_buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            plain.connect((self.place.host, port))
        except OSError:
            plain.close()
            raise
        return plain

    def head(self, method: str, path: str, *more: str) -> bytes:
        """Return the beginning of a request, to be written by hand."""
        own = (f"Host: {self.place.host}", f"Authorization: {self.place.token}")
        return "\r\n".join((f"{method} {path} HTTP/1.1", *own, *more, "", "")).encode()

    def wait_for_answer(self, plain: socket.socket, what: str) -> None:
        """Count how the other side ends: with a status, by closing, or not at all."""
        plain.settimeout(max(0.01, min(ANSWER_SECONDS, self.left())))
        try:
            answer = plain.recv(4096)
        except OSError as error:
            self.got[f"{what} {type(error).__name__}"] += 1
            return
        self.got[f"{what} {answer[9:12].decode() or 'closed'}"] += 1


@contextlib.contextmanager
def counted(attacker: Attacker) -> Iterator[None]:
    """Count an error of a bare socket instead of ending with it."""
    try:
        yield
    except OSError as error:
        attacker.got[type(error).__name__] += 1
        time.sleep(0.05)
