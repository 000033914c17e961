"""Measurements that come by a named pipe: read, and stored by whom a configuration names."""

from __future__ import annotations

import fcntl
import os
import select
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from monitoring.model import Measurement
from monitoring.publishers.every import Every

AT_ONCE_BYTES = 1 << 16
PIPE_BYTES = 1 << 20
"""As much as whoever is not root may ask for; else it holds what pipes hold."""
MAX_LINE = 64 * 1024
LOOK_SECONDS = 0.5


class Handler:
    """Reads in a thread of its own, until it is closed. Others' processes write."""

    def __init__(self, pipe: Path, every: Every) -> None:
        """Make the pipe where there is none; who writes to one that is there goes on."""
        with suppress(FileExistsError):
            os.mkfifo(pipe, 0o600)
        # Open for writing as well: else it would end whenever the last writer has gone.
        self._pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        with suppress(OSError):
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._every, self._left = every, b""
        self._decoder = msgspec.json.Decoder(Measurement)
        self._ends = threading.Event()
        self._stored = self._wrong = self._lost = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="measurements", daemon=True)
        self._thread.start()

    @property
    def stored(self) -> int:
        """Measurements that were handed on."""
        return self._stored

    @property
    def lost(self) -> int:
        """Lines that are no measurements, and measurements that a publisher has not told."""
        with self._lock:
            return self._wrong + self._lost + self._every.lost

    def use(self, every: Every) -> None:
        """Have others told from now on."""
        with self._lock:
            before, self._every = self._every, every
            before.close()
            self._lost += before.lost

    def close(self) -> None:
        """Take what is there already, and publish it."""
        self._ends.set()
        self._thread.join()
        os.close(self._pipe)
        self._every.close()

    def _run(self) -> None:
        while not self._ends.is_set():
            select.select([self._pipe], [], [], LOOK_SECONDS)
            self._read()
        self._read()

    def _read(self) -> None:
        """Take what waits, no more than a pipe holds: who goes on writing ends some time."""
        with suppress(BlockingIOError):
            for _ in range(PIPE_BYTES // AT_ONCE_BYTES):
                self._take(os.read(self._pipe, AT_ONCE_BYTES))

    def _take(self, text: bytes) -> None:
        *lines, self._left = (self._left + text).split(b"\n")
        if len(self._left) > MAX_LINE:
            self._wrong, self._left = self._wrong + 1, b""
        some = list(self._understood(lines))
        if some:
            with self._lock:
                lost = self._every.publish(some)
            self._stored += len(some) - lost
            self._wrong += lost

    def _understood(self, lines: list[bytes]) -> Iterator[Measurement]:
        for each in lines:
            try:
                yield self._decoder.decode(each)
            except (msgspec.DecodeError, UnicodeError):
                self._wrong += 1
