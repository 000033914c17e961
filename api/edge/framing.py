"""Where a request's body ends: after its Content-Length, or after its last chunk."""

from __future__ import annotations

import re

from servioticy.http_heads import MAX_HEAD, Head, Malformed

_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")
MAX_CHUNK_LINE = 1_024
STEPS = 768
"""Of chunks in one turn; a chunk takes three. Then it is others' turn: a millisecond at most."""


class TooMuch(Exception):
    """The body is longer than the platform takes."""


class Body:
    """Collects the body of one request from what arrives, at most `largest` bytes."""

    __slots__ = (
        "_chunk",
        "_chunked",
        "_ended",
        "_left",
        "_trailer",
        "content",
        "has_more",
        "largest",
    )

    def __init__(self, head: Head, largest: int) -> None:
        """Raises TooMuch where the head already says so."""
        if head.length > largest:
            raise TooMuch
        self.content = bytearray()
        self.has_more = False
        """whether the last turn has ended before what had arrived"""
        self.largest = largest
        self._chunked = head.chunked
        self._left = head.length
        self._chunk = -1
        """bytes of the present chunk still to come; -1: its size line is"""
        self._trailer = 0
        self._ended = False

    @property
    def left(self) -> int:
        """So many bytes at least are still to come; with chunks: of the present one."""
        return max(self._chunk, 0) if self._chunked else self._left

    def take(self, arrived: bytearray, steps: int = STEPS) -> bool:
        """Move what belongs to the body out of `arrived`; whether the body is whole now.

        Of a body in chunks only what so many steps take: then `has_more`. Raises Malformed
        and TooMuch.
        """
        if self._chunked:
            self.has_more = False
            while not self._ended and self._take_chunked(arrived):
                steps -= 1
                if not steps:
                    self.has_more = not self._ended
                    break
            return self._ended
        some = arrived[: self._left]
        del arrived[: len(some)]
        self.content += some
        self._left -= len(some)
        return self._left == 0

    def _take_chunked(self, arrived: bytearray) -> bool:
        """Go one step on and return True; False where more has to arrive first."""
        if self._chunk > 0:
            some = arrived[: self._chunk]
            del arrived[: len(some)]
            self.content += some
            self._chunk -= len(some)
            return bool(some)
        if self._chunk == 0:  # the line end after a chunk's content
            if len(arrived) < 2:
                return False
            if arrived[:2] != b"\r\n":
                raise Malformed(400, "A chunk of the body is malformed")
            del arrived[:2]
            self._chunk = -1
            return True
        end = arrived.find(b"\r\n")
        if end > MAX_CHUNK_LINE or (end < 0 and len(arrived) > MAX_CHUNK_LINE):
            raise Malformed(400, "A chunk of the body is malformed")
        if end < 0:
            return False
        line = bytes(arrived[:end])
        del arrived[: end + 2]
        if self._trailer:
            self._take_trailer(line)
        else:
            self._begin_chunk(line)
        return True

    def _begin_chunk(self, line: bytes) -> None:
        size = _CHUNK.fullmatch(line)
        if size is None:
            raise Malformed(400, "A chunk of the body is malformed")
        length = int(size[1], 16)
        if len(self.content) + length > self.largest:
            raise TooMuch
        if length:
            self._chunk = length
        else:
            self._trailer = 1

    def _take_trailer(self, line: bytes) -> None:
        """What follows the last chunk is read over, up to an empty line."""
        self._trailer += len(line)
        if self._trailer > MAX_HEAD:
            raise Malformed(431, "The headers after the body are too long")
        self._ended = not line
