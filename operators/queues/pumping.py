"""Carries frames between a socket and two lists of a store: the same on both sides of it.

An element of a list is the body of a frame; an empty one says that its side has ended. Loaded by
processes beside programs, as resp.py is.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from operators.queues.resp import ANSWER_SECONDS, Connection

END = b""
WAIT_SECONDS = 2
"""So long a read blocks that finds nothing; then it is looked whether it still makes sense."""

KEPT_MILLISECONDS = 600_000
"""After so long a list goes that nobody has touched: of who has died without clearing up."""

ELEMENT_BYTES = 64
"""What an element takes beside its content."""

_HEAD = struct.Struct(">I")


class Most(NamedTuple):
    """How many bytes may be under way."""

    frame: int
    unread: int | None
    """of elements that are given before the other side has given one; None: who gives is ours"""


class Given:
    """How much a side has given since it was given something."""

    def __init__(self, most: Most) -> None:
        self._most = most
        self._size = 0

    def reset(self) -> None:
        """Begin anew: the other side has given something."""
        self._size = 0

    def is_too_much(self, body: bytes) -> bool:
        """Tell whether one more is more than may be, and count it."""
        self._size += len(body) + ELEMENT_BYTES
        return self._most.unread is not None and self._size > self._most.unread


def give(source: BinaryIO, store: Connection, queue: str, most: Most, given: Given) -> None:
    """Append each frame that comes to a list, until no more come; then say so.

    Of who sends more than may be, words are appended that are no frame, and it is over: that is
    for the other side to judge. Raises StoreLost, Refused.
    """
    is_over = False
    while not is_over:
        body = _frame(source, most.frame)
        is_over = not body
        if body is None:
            body = b"a frame of more than %d bytes" % most.frame
        elif body and given.is_too_much(body):
            body = b"more than %d bytes to one frame" % (most.unread or 0)
            is_over = True
        store.calls([("RPUSH", queue, body), ("PEXPIRE", queue, KEPT_MILLISECONDS)])


def take(
    store: Connection, queue: str, sink: socket.socket, look: Callable[[], bool], given: Given
) -> None:
    """Send on each frame of a list, until its side has ended, or `look` says it is over.

    Raises StoreLost, Refused, and OSError where nobody listens any more.
    """
    while True:
        found = store.call("BLPOP", queue, WAIT_SECONDS, seconds=WAIT_SECONDS + ANSWER_SECONDS)
        if look():
            return
        if isinstance(found, list):
            body = found[1]
            if not isinstance(body, bytes) or body == END:
                return
            given.reset()
            sink.sendall(_HEAD.pack(len(body)) + body)


def _frame(source: BinaryIO, most: int) -> bytes | None:
    """Return the body of the next frame; b"" where there is none any more, None: too long."""
    try:
        head = source.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return END
        (length,) = _HEAD.unpack(head)
        if length > most:
            return None
        body = source.read(length)
    except OSError:  # who sends has ended before it had read all
        return END
    return body if len(body) == length else END
