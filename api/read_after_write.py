"""Reads see writes: a read waits until what was accepted before it is stored.

As raw and derived updates are stored in one transaction, such a read sees what was
computed from the caller's last write, too (design, section 3).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from servioticy.errors import Unavailable
from servioticy.ports import History, Log

HEADER = "X-Servioticy-Behind"
UNKNOWN = "unknown"
LOG_LOST = "log-lost"
FIRST_PAUSE_SECONDS = 0.003
LONGEST_PAUSE_SECONDS = 0.025
GROWTH = 1.25


class ReadAfterWrite:
    """Waits for the pipeline, but never longer than a reader would."""

    def __init__(
        self,
        history: History,
        log: Log,
        seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._history = history
        self._log = log
        self._seconds = seconds
        self._monotonic = monotonic
        self._sleep = sleep

    def wait(self, partition: int) -> dict[str, str]:
        """Wait until all that is in the partition now is stored; headers for the answer.

        No header: the read sees everything. Otherwise the header tells how many records
        of the log are not stored yet, that the broker does not say where the log ends, or
        that the log ends before what is stored of it: some of what was accepted is lost.
        """
        deadline = self._monotonic() + self._seconds
        try:
            end = self._log.end_offset(partition)
        except Unavailable:
            return {HEADER: UNKNOWN}
        pause = FIRST_PAUSE_SECONDS
        while (behind := end - self._history.progress(partition)) > 0:
            remaining = deadline - self._monotonic()
            if remaining <= 0:
                return {HEADER: str(behind)}
            self._sleep(min(pause, remaining))
            pause = min(pause * GROWTH, LONGEST_PAUSE_SECONDS)
        return self._lost(partition) if behind < 0 else {}

    def _lost(self, partition: int) -> dict[str, str]:
        """Whether the log ends before what is stored of it, or has only grown meanwhile."""
        stored = self._history.progress(partition)
        try:
            return {HEADER: LOG_LOST} if stored > self._log.end_offset(partition) else {}
        except Unavailable:
            return {HEADER: UNKNOWN}
