"""Measurements through a named pipe, a line of JSON each: whoever reads it may be anybody.

What is written at once is no longer than the kernel keeps together, so any number of processes may
write to one pipe. A pipe has no address and no port, and none but its owner may open it.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from monitoring.model import Measurement
from servioticy.errors import Unavailable

FULL_SECONDS = 5.0
"""So long it is waited for room: its reader takes all that comes, as long as it lives."""


class PipePublisher:
    """Opens the pipe at its first measurements, and anew after its reader has gone."""

    def __init__(self, pipe: Path) -> None:
        self._pipe = pipe
        self._open: int | None = None
        self._encoder = msgspec.json.Encoder()

    def publish(self, measurements: Sequence[Measurement]) -> int:
        """Write them; return how many were too long. Raises Unavailable where nobody reads.

        Some of them may have been read by then; they are written again.
        """
        lines = [self._encoder.encode(each) + b"\n" for each in measurements]
        short = [each for each in lines if len(each) <= select.PIPE_BUF]
        try:
            for some in _together(short):
                self._write(some)
        except OSError as error:
            self.close()
            raise Unavailable(f"nobody reads {self._pipe}: {error}") from error
        return len(lines) - len(short)

    def close(self) -> None:
        """Let the pipe go."""
        opened, self._open = self._open, None
        if opened is not None:
            os.close(opened)

    def _write(self, some: bytes) -> None:
        if self._open is None:
            self._open = os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        while True:
            try:
                os.write(self._open, some)
                return
            except BlockingIOError:
                if not select.select([], [self._open], [], FULL_SECONDS)[1]:
                    raise


def _together(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Yield lines joined, as long as they are written as one."""
    some: list[bytes] = []
    size = 0
    for each in lines:
        if size + len(each) > select.PIPE_BUF:
            yield b"".join(some)
            some, size = [], 0
        some.append(each)
        size += len(each)
    if some:
        yield b"".join(some)
