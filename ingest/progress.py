"""How far the pipeline is with the log: asked once for all who wait for it.

Readers wait so for what was accepted before they came, and senders of much until what they have
sent is worked on. How either is told what came of it is theirs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import NamedTuple

from servioticy.errors import Unavailable
from servioticy.ports.history import History
from servioticy.ports.log import Log

FIRST_PAUSE_SECONDS = 0.003
MAX_PAUSE_SECONDS = 0.025
GROWTH = 1.25


class Awaited(NamedTuple):
    """All that is in the partition now, of this tenant's streams too where that is put off."""

    partition: int
    tenant: int


class How(Enum):
    """How it ended to wait."""

    STORED = auto()
    """All of it is stored."""
    BEHIND = auto()
    """It is late."""
    UNKNOWN = auto()
    """Somebody who is asked does not answer."""
    LOST = auto()
    """The log ends before what is stored of it: some of what was accepted is lost."""


class Ended(NamedTuple):
    """What came of waiting."""

    how: How
    at_once: bool = False
    """whether it was so when it was first looked"""
    behind: int = 0
    """records of the log that are not stored yet"""


class Waiting:
    """One who waits; told what came of it."""

    __slots__ = ("deadline", "done", "end", "partition", "tenant")

    def __init__(self, awaited: Awaited, deadline: float, done: Callable[[Ended], object]) -> None:
        self.partition, self.tenant = awaited
        self.deadline = deadline
        self.done = done
        self.end: int | None = None
        """where the log ended after it had come; None: not asked yet"""


class Progress:
    """Asks once for all who wait for a partition: where its log ends, what is stored."""

    def __init__(self, history: History, log: Log) -> None:
        self._history = history
        self._log = log

    def look(self, waiting: list[Waiting], now: float) -> list[Waiting]:
        """Tell those that need not or must not wait any more; the others are returned."""
        left: list[Waiting] = []
        for partition in dict.fromkeys(each.partition for each in waiting):
            left += self._look(
                partition, [each for each in waiting if each.partition == partition], now
            )
        return left

    def hold(
        self,
        awaited: Iterable[Awaited],
        seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> list[Ended]:
        """Wait in the thread that calls, and so long at most; return what came of each."""
        found: list[Ended] = []
        deadline = monotonic() + seconds
        waiting = [Waiting(each, deadline, found.append) for each in dict.fromkeys(awaited)]
        pause = FIRST_PAUSE_SECONDS
        while waiting := self.look(waiting, monotonic()):
            sleep(max(0.0, min(pause, deadline - monotonic())))
            pause = min(pause * GROWTH, MAX_PAUSE_SECONDS)
        return found

    def _look(self, partition: int, waiting: list[Waiting], now: float) -> list[Waiting]:
        new = {each for each in waiting if each.end is None}
        try:
            if new:
                end = self._log.end_offset(partition)
                for each in new:
                    each.end = end
            tenants = {each.tenant for each in waiting}
            stored, put_off = self._history.stored(partition, tenants)
            # Ahead of the log as it was asked for: it has grown since, or has been lost.
            ahead = any(stored > (each.end or 0) for each in waiting)
            lost = ahead and stored > self._log.end_offset(partition)
        except Unavailable:
            for each in waiting:
                each.done(Ended(How.UNKNOWN))
            return []
        left = []
        for each in waiting:
            behind = (each.end or 0) - min(stored, put_off.get(each.tenant, stored))
            if lost:
                each.done(Ended(How.LOST))
            elif behind <= 0:
                each.done(Ended(How.STORED, each in new))
            elif each.deadline <= now:
                each.done(Ended(How.BEHIND, behind=behind))
            else:
                left.append(each)
        return left
