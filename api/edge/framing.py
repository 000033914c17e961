"""Where a request's body ends: after its Content-Length, or after its last chunk."""

from __future__ import annotations

import re

from servioticy.http_heads import MAX_HEAD, Head, Malformed

_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")
MAX_CHUNK_LINE = 1_024
CHUNKS_A_TURN = 512
"""Then it is others' turn: half a millisecond."""
FREE_CHUNKS, BYTES_A_CHUNK = 4_096, 64
"""A body has that many chunks at most, and one more for so many bytes of its content.

Else a megabyte is as much work as a million updates: each chunk costs as much as a kilobyte, and
whoever sends them needs no token. A client that writes a document byte by byte is still served.
"""


class TooMuch(Exception):
    """The body is longer than the platform takes."""


class Body:
    """Collects the body of one request from what arrives, at most `largest` bytes."""

    __slots__ = (
        "_chunk",
        "_chunked",
        "_chunks",
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
        self._chunks = 0
        """how many there were so far"""
        self._trailer = 0
        self._ended = False

    @property
    def left(self) -> int:
        """So many bytes at least are still to come; with chunks: of the present one."""
        return max(self._chunk, 0) if self._chunked else self._left

    def take(self, arrived: bytearray, chunks: int = CHUNKS_A_TURN) -> bool:
        """Move what belongs to the body out of `arrived`; whether the body is whole now.

        Of a body in chunks only so many of them: then `has_more`. Raises Malformed and TooMuch.
        """
        if self._chunked:
            self._take_chunks(arrived, chunks)
            return self._ended
        some = arrived if len(arrived) <= self._left else arrived[: self._left]
        size = len(some)
        self.content += some
        del arrived[:size]
        self._left -= size
        return self._left == 0

    def _take_chunks(self, arrived: bytearray, chunks: int) -> None:
        at, before = 0, -1
        self.has_more = False
        while not self._ended and at != before:
            if not chunks:
                self.has_more = True
                break
            chunks -= 1
            before, at = at, self._next(arrived, at)
        del arrived[:at]  # once a turn: what is behind is moved each time

    def _next(self, arrived: bytearray, at: int) -> int:
        """Go on by a chunk, or by what is there of it; return where. `at`: more has to come."""
        if self._chunk < 0:
            end = arrived.find(b"\r\n", at, at + MAX_CHUNK_LINE + 2)
            if end < 0:
                if len(arrived) - at > MAX_CHUNK_LINE:
                    raise Malformed(400, "A chunk of the body is malformed")
                return at
            line, at = bytes(arrived[at:end]), end + 2
            if self._trailer:
                self._take_trailer(line)
                return at
            self._begin_chunk(line)
            if self._chunk < 0:
                return at
        return self._take_content(arrived, at)

    def _take_content(self, arrived: bytearray, at: int) -> int:
        """Take what there is of the present chunk, and the line end after it."""
        if self._chunk:
            some = arrived[at : at + self._chunk]
            self.content += some
            self._chunk -= len(some)
            at += len(some)
            if self._chunk:
                return at
        end = arrived[at : at + 2]
        if len(end) < 2:
            return at
        if end != b"\r\n":
            raise Malformed(400, "A chunk of the body is malformed")
        self._chunk = -1
        return at + 2

    def _begin_chunk(self, line: bytes) -> None:
        size = _CHUNK.fullmatch(line)
        if size is None:
            raise Malformed(400, "A chunk of the body is malformed")
        length = int(size[1], 16)
        if len(self.content) + length > self.largest:
            raise TooMuch
        self._chunks += 1
        if self._chunks > FREE_CHUNKS + len(self.content) // BYTES_A_CHUNK:
            raise Malformed(
                400,
                f"The body comes in too many chunks: {self._chunks} for the first "
                f"{len(self.content)} bytes; {FREE_CHUNKS}, and one more for each "
                f"{BYTES_A_CHUNK} bytes, are allowed",
            )
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
