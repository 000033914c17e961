"""What is told too often is counted: ten lines a second of a kind, and how many there were more.

Whoever may send us something may send nonsense, as fast as the line takes it; each of our lines
about it costs more than that, and pushes others' out of the log.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

MOST = 10
WINDOW_SECONDS = 1.0
MAX_KINDS = 1_000
"""Beyond it all that are not known are one kind."""


class NotTooOften(logging.Filter):
    """Lets so many records of a kind through in a second; the next one tells of the others.

    A kind is a logger, a level and an event. `tell` is given a record with what was suppressed
    where nothing of its kind comes any more.
    """

    def __init__(
        self,
        tell: Callable[[logging.LogRecord], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._tell = tell
        self._clock = clock
        self._begin()
        # A thread of ours may hold the lock where a process is forked.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._kinds: dict[tuple[str, int, str], list[float]] = {}
        self._ended = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is to be told; after a while those that were not are."""
        now = self._clock()
        with self._lock:
            late = self._over(now) if now >= self._ended else []
            kind = self._kind(record)
            window = self._kinds.setdefault(kind, [now + WINDOW_SECONDS, 0, 0])
            window[1] += 1
            is_told = window[1] <= MOST
            window[2] += not is_told
        for each in late:
            self._tell(each)
        return is_told

    def tick(self) -> None:
        """Tell of what was suppressed in seconds that are over."""
        with self._lock:
            late = self._over(self._clock())
        for each in late:
            self._tell(each)

    def flush(self) -> None:
        """Tell of what was suppressed and is not told yet, however long ago that was."""
        with self._lock:
            late = self._over(float("inf"))
        for each in late:
            self._tell(each)

    def _kind(self, record: logging.LogRecord) -> tuple[str, int, str]:
        kind = record.name, record.levelno, str(record.msg)[:200]
        return kind if kind in self._kinds or len(self._kinds) < MAX_KINDS else ("", 0, "others")

    def _over(self, now: float) -> list[logging.LogRecord]:
        """Forget windows that are over; a record for each that has suppressed something."""
        over = {kind: each for kind, each in self._kinds.items() if each[0] <= now}
        for kind in over:
            del self._kinds[kind]
        self._ended = min([each[0] for each in self._kinds.values()], default=now)
        return [_counted(*kind, int(each[2])) for kind, each in over.items() if each[2]]


def _counted(name: str, level: int, event: str, suppressed: int) -> logging.LogRecord:
    facts = {"name": name, "levelno": level, "levelname": logging.getLevelName(level)}
    facts |= {"msg": event, "suppressed": suppressed}
    return logging.makeLogRecord(facts)
