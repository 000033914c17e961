"""Frames between pool and worker: length, kind, body. Bytes only, sizes checked both ways.

The two sides do not trust each other: a length beyond the limit ends the conversation
before a byte of it is kept.
"""

from __future__ import annotations

import socket
import struct
import time

MAX_BYTES = 8 * 1024 * 1024
"""The longest frame. What the pool sends is far shorter; answers may be longer."""

_HEAD = struct.Struct("!IB")
_BUDGET = struct.Struct("!I")
_CHUNK = 65536

SPAWN = struct.Struct("!d???")
"""To the zygote, for a worker: seconds idle until it ends, unprotected, checks, is patient."""

PID = struct.Struct("!i")
"""Its answer; 0 where there was no fork."""

# Pool to worker.
DEFINE = ord("D")  # budget, then [[slot, program]...]; answered by DEFINED
WIRE = ord("W")  # budget, then a portion of a wiring; answered by WIRED
GROW = ord("G")  # budget, then trees; answered by GROWN, TIMEOUT, OOM or BROKEN
CHECK = ord("C")  # budget, then [program...]; answered by PROBLEMS

# Worker to pool.
READY = ord("Y")  # once, after the start
REFUSED = ord("X")  # once, instead of READY: why it will not serve
DEFINED = ord("E")  # the programs are known from now on
WIRED = ord("I")  # that portion is known from now on
GROWN = ord("V")  # for each call what was made and how it ended
TIMEOUT = ord("T")
OOM = ord("O")
BROKEN = ord("B")  # the frame could not be run at all: why
PROBLEMS = ord("P")  # for each program a list of [kind, text]


class ProtocolError(Exception):
    """The other side sent something that is not a frame."""


class Closed(Exception):
    """The other side is gone."""


def frame(kind: int, body: bytes) -> bytes:
    """Return one frame, ready to send. Raises ProtocolError if it is too long."""
    if len(body) > MAX_BYTES:
        raise ProtocolError(f"a frame of {len(body)} bytes is too long")
    return _HEAD.pack(len(body), kind) + body


def budgeted(milliseconds: int, question: bytes) -> bytes:
    """Return the body of a question that must be answered within so many milliseconds."""
    return _BUDGET.pack(milliseconds) + question


def budget_of(body: bytes) -> tuple[float, bytes]:
    """Return the seconds a question has, and the question."""
    return _BUDGET.unpack_from(body)[0] / 1000, body[_BUDGET.size :]


class Reader:
    """A reader reads frames from a socket; what was read beyond one of them waits for the next."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray()
        self._deadline: float | None = None

    def read(self, seconds: float | None = None) -> tuple[int, bytes]:
        """Return the next frame's kind and body. Raises Closed, ProtocolError or TimeoutError.

        `seconds` are for all of it, however slowly it comes; None leaves each wait to the
        socket's own time limit.
        """
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._fill(_HEAD.size)
        length, kind = _HEAD.unpack_from(self._buffer)
        if length > MAX_BYTES:
            raise ProtocolError(f"a frame of {length} bytes is announced")
        end = _HEAD.size + length
        self._fill(end)
        body = bytes(memoryview(self._buffer)[_HEAD.size : end])
        del self._buffer[:end]
        return kind, body

    def surplus(self) -> bool:
        """Tell whether more has come than what was read."""
        return bool(self._buffer)

    def _fill(self, size: int) -> None:
        while len(self._buffer) < size:
            if self._deadline is not None:
                left = self._deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                self._connection.settimeout(left)
            try:
                more = self._connection.recv(max(_CHUNK, size - len(self._buffer)))
            except ConnectionError as error:
                raise Closed from error
            if not more:
                raise Closed
            self._buffer += more
