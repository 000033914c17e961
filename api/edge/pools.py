"""Whose turn it is: a bounded number at work, and nobody with more than a share of them.

Everything here happens in the thread of the event loop; there are no locks.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any


class Busy(Exception):
    """There is no room: 429 where it is the caller's own doing, else 503."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(slots=True, eq=False)
class Job:
    """Work for a thread, and who is told what came of it, in the thread of the loop."""

    who: Hashable
    work: Callable[[], Any]
    done: Callable[[Any], None]
    """gets the result or the error, once; None where the work was not wanted any more"""
    wanted: Callable[[], bool] = lambda: True
    since: float = 0.0


class Pool:
    """Starts jobs in turn: first come, first served within one caller, callers by turns."""

    def __init__(
        self,
        start: Callable[[Job], None],
        threads: int,
        share: float,
        longest: int,
        longest_of_one: int,
    ) -> None:
        """`share` of the threads is the most that one caller holds; the lengths are of queues."""
        self._start = start
        self._threads = threads
        self._most_of_one = max(1, int(threads * share))
        self._longest = longest
        self._longest_of_one = longest_of_one
        self._running: Counter[Hashable] = Counter()
        self._at_work = 0
        self._waiting: OrderedDict[Hashable, deque[Job]] = OrderedDict()
        self._queued = 0

    def submit(self, job: Job, *, begun: bool = False) -> None:
        """Start it now or in its turn. Raises Busy, unless the request has `begun` before."""
        # Where a thread is free, all who wait have their share already.
        if self._at_work < self._threads and self._running[job.who] < self._most_of_one:
            self._run(job)
            return
        own = self._waiting.get(job.who)
        if not begun:
            if own is not None and len(own) >= self._longest_of_one:
                raise Busy(429)
            if self._queued >= self._longest:
                raise Busy(503)
        if own is None:
            own = self._waiting[job.who] = deque()
        own.append(job)
        self._queued += 1

    def finished(self, job: Job) -> None:
        """A job's thread is free again: the next one's turn."""
        self._at_work -= 1
        self._running[job.who] -= 1
        if not self._running[job.who]:
            del self._running[job.who]
        while self._at_work < self._threads and self._run_next():
            pass

    def is_awaited(self) -> bool:
        """Whether a job waits for a thread."""
        return self._queued > 0

    def expired(self, before: float) -> list[Job]:
        """Take those out that have waited since before that time."""
        late: list[Job] = []
        for who in list(self._waiting):
            own = self._waiting[who]
            while own and own[0].since < before:
                late.append(own.popleft())
            if not own:
                del self._waiting[who]
        self._queued -= len(late)
        return late

    def _run_next(self) -> bool:
        for who, own in self._waiting.items():
            if self._running[who] >= self._most_of_one:
                continue
            job = own.popleft()
            self._queued -= 1
            if own:
                self._waiting.move_to_end(who)
            else:
                del self._waiting[who]
            if job.wanted():
                self._run(job)
            else:
                job.done(None)
            return True
        return False

    def _run(self, job: Job) -> None:
        self._at_work += 1
        self._running[job.who] += 1
        self._start(job)


class Budget:
    """Bytes held for callers, in all and for one of them."""

    def __init__(self, most: int, share: float) -> None:
        self._most = most
        self._most_of_one = int(most * share)
        self._held: Counter[Hashable] = Counter()
        self._all = 0

    def take(self, who: Hashable, size: int) -> None:
        """Hold that many more for the caller. Raises Busy where there is no room."""
        if self._held[who] + size > self._most_of_one:
            raise Busy(429)
        if self._all + size > self._most:
            raise Busy(503)
        self._held[who] += size
        self._all += size

    def give(self, who: Hashable, size: int) -> None:
        """They are not held any more."""
        self._held[who] -= size
        self._all -= size
        if not self._held[who]:
            del self._held[who]
