"""Rows between the thread that reads them from Spark and the one that works on them."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue

from pipeline.work import Row

MAX_ROWS = 20_000
MAX_BYTES = 64 * 1024 * 1024
"""Taken from Spark ahead of the work; a backlog stays in the log, not in memory."""

TAKEN_BYTES = 16 * 1024 * 1024
"""Handed over at once, or a single larger row."""

FULL_SECONDS = 0.01


class Inbox:
    """One thread puts, one takes. Bounded in rows and in bytes: `wait_for_room`."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_rows: int = MAX_ROWS) -> None:
        self._rows: SimpleQueue[Row | None] = SimpleQueue()
        self._max_bytes, self._max_rows = max_bytes, max_rows
        self._put = self._taken = 0
        self._room = threading.Event()
        self._held: Row | None = None
        self._failure: BaseException | None = None
        self._ended = False

    @property
    def bytes(self) -> int:
        """About how many bytes wait: each thread counts its own half."""
        return self._put - self._taken

    def put(self, row: Row) -> None:
        """Let a row wait."""
        self._put += len(row.value or b"")
        self._rows.put(row)

    def wait_for_room(self) -> None:
        """Where too much waits already, until some of it is taken."""
        while self.bytes > self._max_bytes or self._rows.qsize() > self._max_rows:
            self._room.clear()
            self._room.wait(FULL_SECONDS)

    def end(self, failure: BaseException | None = None) -> None:
        """No more rows come; the failure is raised by whoever takes the last."""
        self._failure = failure
        self._rows.put(None)

    def take(self, most: int, seconds: float) -> list[Row] | None:
        """All that waits, up to a bound; nothing came for so long: none; None: that was all."""
        if self._ended:
            if self._failure is not None:
                raise self._failure
            return None
        rows: list[Row] = []
        size = 0
        try:
            row = self._next(seconds)
            while row is not None:
                size += len(row.value or b"")
                if rows and size > TAKEN_BYTES:
                    self._held = row
                    break
                rows.append(row)
                if len(rows) >= most:
                    break
                row = self._rows.get_nowait()
            self._ended = row is None
        except Empty:
            pass
        self._taken += sum(len(each.value or b"") for each in rows)
        self._room.set()
        return rows

    def _next(self, seconds: float) -> Row | None:
        """The row that was too much last time, or the next one to come."""
        held, self._held = self._held, None
        if held is not None:
            return held
        return self._rows.get(timeout=seconds) if seconds > 0 else self._rows.get_nowait()
