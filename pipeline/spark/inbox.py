"""Rows between the thread that reads them from Spark and the one that works on them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import NamedTuple

from pipeline.work import Row
from servioticy.gathering import Gathering

MAX_ROWS = 20_000
MAX_BYTES = 64 * 1024 * 1024
"""Taken from Spark ahead of the work; a backlog stays in the log, not in memory."""

GET_BYTES = 16 * 1024 * 1024
"""Handed over at once, or a bundle more."""

KEPT_BYTES = 8 * 1024 * 1024
"""Of what was handed over, the newest: a Postgres that is killed forgets what it was given in the
last 0.6 s (three times its `wal_writer_delay`), and a worker takes less than so much meanwhile."""

FULL_SECONDS = 0.01

PEEKED = 1000
"""Rows that are looked at before they are taken."""


class _Bundle(NamedTuple):
    """Rows that came together, and how many bytes they are."""

    rows: list[Row]
    size: int


_NOTHING = _Bundle([], 0)
"""It has been woken."""


class Inbox:
    """Rows that one thread puts, many together, and another gets.

    `wait_for_room` bounds them in number and in bytes.
    """

    def __init__(
        self,
        max_bytes: int = MAX_BYTES,
        max_rows: int = MAX_ROWS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bundles: SimpleQueue[_Bundle | None] = SimpleQueue()
        self._max_bytes, self._max_rows = max_bytes, max_rows
        # Each thread counts its own half.
        self._bytes_in = self._bytes_out = self._rows_in = self._rows_out = 0
        self._room = threading.Event()
        self._rest: list[Row] = []
        self._given: deque[_Bundle] = deque()
        self._given_bytes = 0
        self._clock = clock
        self._gathering = Gathering(clock)
        self._failure: BaseException | None = None
        self._ended = False

    @property
    def is_full(self) -> bool:
        """Whether more rows, or more bytes, wait than should."""
        return (
            self._bytes_in - self._bytes_out > self._max_bytes
            or self._rows_in - self._rows_out > self._max_rows
        )

    def put(self, rows: list[Row], size: int) -> None:
        """Add rows that are so many bytes."""
        self._bytes_in += size
        self._rows_in += len(rows)
        self._bundles.put(_Bundle(rows, size))

    def wake(self) -> None:
        """Let who waits for rows go on without any. For any thread."""
        self._bundles.put(_NOTHING)

    def peek(self) -> list[Row]:
        """Return rows that have come and wait. For the thread that gets them."""
        while not self._ended and len(self._rest) < PEEKED and (bundle := self._next(0.0)):
            self._take(bundle)
        return self._rest[:PEEKED]

    def wait_for_room(self) -> None:
        """Wait, where too much is in here already, until there is room."""
        while self.is_full:
            self._room.clear()
            self._room.wait(FULL_SECONDS)

    def end(self, failure: BaseException | None = None) -> None:
        """Note that no more rows come; whoever gets the last one gets the failure next."""
        self._failure = failure
        self._bundles.put(None)

    def get(self, most: int, seconds: float) -> list[Row] | None:
        """All rows that wait, up to a bound; none where nothing came for so many seconds.

        Under load also those that come a little later. None where no more will come. Raises what
        the reading ended with.
        """
        rows = self._rest
        if self._ended and not rows:
            if self._failure is not None:
                raise self._failure
            return None
        size = 0
        self._gathering.ends()
        self._gathering.asks()
        until = self._clock() if rows else None
        while len(rows) < most and size < GET_BYTES and not self._ended:
            bundle = self._next(seconds if until is None else until - self._clock())
            if bundle is None or (bundle is _NOTHING and not rows):
                break
            if until is None:
                until = self._gathering.until()
            self._take(bundle)
            size += bundle.size
        self._room.set()
        self._rest = rows[most:]
        self._gathering.takes(len(rows))
        return rows[:most]

    def rewind(self, offset: int) -> bool:
        """Hand over again, next, what was handed over from this offset on.

        False where it is not kept any more.
        """
        again = [row for each in self._given for row in each.rows if row.offset >= offset]
        if not again or again[0].offset != offset:
            return False
        self._rest = again
        return True

    def _take(self, bundle: _Bundle) -> None:
        if bundle is _NOTHING:
            return
        self._keep(bundle)
        self._rest += bundle.rows
        self._rows_out += len(bundle.rows)
        self._bytes_out += bundle.size

    def _keep(self, bundle: _Bundle) -> None:
        self._given.append(bundle)
        self._given_bytes += bundle.size
        while self._given_bytes - self._given[0].size >= KEPT_BYTES:
            self._given_bytes -= self._given.popleft().size

    def _next(self, seconds: float) -> _Bundle | None:
        """What came next, if it comes within so many seconds; notes that nothing more will."""
        try:
            bundle = self._bundles.get(seconds > 0, max(0.0, seconds))
        except Empty:
            return None
        self._ended = bundle is None
        return bundle
