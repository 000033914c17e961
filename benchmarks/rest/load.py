"""Many connections that ask one thing after the other, in one thread, as cheaply as it goes.

A load generator takes the processor from what it measures: this one spends some 20 µs a request.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from servioticy.settings import Settings
from servioticy.settings.places import reachable

READ_BYTES = 1 << 18
ANSWER_SECONDS = 30.0
Make = Callable[[int], bytes]
"""Makes the request of a number."""


@dataclass(slots=True)
class Measured:
    """How long each answer took, and how many bytes all of them had."""

    seconds: list[float] = field(default_factory=list)
    bytes: int = 0
    lasted: float = 0.0


class _Asking:
    """One connection, and what of its answer has come."""

    def __init__(self, settings: Settings) -> None:
        address = (reachable(settings.host), settings.api.port)
        self.socket = socket.create_connection(address, ANSWER_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.arrived = bytearray()
        self.since = 0.0

    def ask(self, request: bytes) -> None:
        self.arrived.clear()
        self.since = time.perf_counter()
        self.socket.sendall(request)

    def take(self) -> bytes | None:
        """Return the whole answer, or None where more is to come."""
        some = self.socket.recv(READ_BYTES)
        if not some:
            raise RuntimeError("the API has closed the connection")
        self.arrived += some
        end = self.arrived.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self.arrived[:end]).lower()
        _, named, rest = head.partition(b"content-length: ")
        if named:
            whole = len(self.arrived) >= end + 4 + int(rest.partition(b"\r\n")[0])
        else:
            whole = self.arrived.endswith(b"\r\n0\r\n\r\n")
        return bytes(self.arrived) if whole else None


def request(
    method: str, path: str, token: str, body: bytes = b"", content_type: str = "application/json"
) -> bytes:
    """Return a whole request."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: {token}\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def closed_loop(
    settings: Settings, connections: int, seconds: float, make: Make, expected: int = 200
) -> Measured:
    """Let each connection ask again as soon as it is answered, for so long.

    Raises RuntimeError where an answer has another status than is expected.
    """
    found, number = Measured(), 0
    with selectors.DefaultSelector() as selector:
        asking = [_Asking(settings) for _ in range(connections)]
        began = time.perf_counter()
        for each in asking:
            selector.register(each.socket, selectors.EVENT_READ, each)
            each.ask(make(number))
            number += 1
        end, waiting = began + seconds, connections
        while waiting:
            for key, _ in selector.select(ANSWER_SECONDS):
                answer = key.data.take()
                if answer is None:
                    continue
                now = time.perf_counter()
                _check(answer, expected)
                found.seconds.append(now - key.data.since)
                found.bytes += len(answer)
                if now < end:
                    key.data.ask(make(number))
                    number += 1
                else:
                    waiting -= 1
        found.lasted = time.perf_counter() - began
        for each in asking:
            each.socket.close()
    return found


def paced(
    settings: Settings, rate: float, seconds: float, make: Make, expected: int = 200
) -> Measured:
    """Ask on one connection, so many times a second."""
    found, one = Measured(), _Asking(settings)
    began = time.perf_counter()
    for number in range(int(rate * seconds)):
        time.sleep(max(0.0, began + number / rate - time.perf_counter()))
        one.ask(make(number))
        while (answer := one.take()) is None:
            pass
        _check(answer, expected)
        found.seconds.append(time.perf_counter() - one.since)
        found.bytes += len(answer)
    found.lasted = time.perf_counter() - began
    one.socket.close()
    return found


def _check(answer: bytes, expected: int) -> None:
    if int(answer[9:12]) != expected:
        raise RuntimeError(answer[:500].decode(errors="replace"))
