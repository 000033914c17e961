"""Records that do nothing, where Spark runs batches and a partition has work of its own.

Between two batches nobody works. So where a time has come that an operator has set itself, or rows
are to be removed, a record begins the next batch; and one a minute does for all that has no hurry.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from servioticy.domain.records import LogRecord, ReleaseRecord

NOTHING = ReleaseRecord((), 0)
"""Of no Service Object."""

PAUSE_SECONDS = 60.0
"""Without any record, until there is one of ours."""


class Log(Protocol):
    """What can be appended to."""

    def append(self, partition: int, record: LogRecord) -> int:
        """Append a record. Raises Unavailable."""


class Store(Protocol):
    """Who knows of work that needs no records."""

    def left_to_do(self, now: int) -> set[int]:
        """Return partitions with times that have come by now, in ms, or rows to remove."""


class Nudging:
    """Appends them, to partitions of which all is stored."""

    def __init__(
        self,
        log: Log,
        store: Store,
        end_offset: Callable[[int], int],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._log = log
        self._store = store
        self._end_offset = end_offset
        self._clock = clock
        self._moved: dict[int, tuple[int, float]] = {}
        """Of each partition where progress stood, and since when."""

    def look(self, progress: Mapping[int, int]) -> None:
        """Nudge the partitions that need it. Raises Unavailable."""
        now = self._clock()
        left = self._store.left_to_do(int(now * 1000))
        for partition, offset in progress.items():
            before, since = self._moved.get(partition, (-1, now))
            if offset != before:
                since = now
            self._moved[partition] = offset, since
            is_quiet = now - since >= PAUSE_SECONDS
            # What is not stored yet is in a batch, or will be, and that does the same.
            if (partition in left or is_quiet) and self._end_offset(partition) <= offset:
                self._log.append(partition, NOTHING)
