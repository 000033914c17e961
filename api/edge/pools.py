"""Whose turn it is: a bounded number at work, and nobody with more than a share of them.

Everything here happens in the thread of the event loop; there are no locks.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from servioticy.domain.quotas import Exceeded


class Busy(Exception):
    """There is no room: 429 where it is the caller's own doing, else 503."""

    def __init__(self, status: int, exceeded: Exceeded | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.exceeded = exceeded
        """the quota that leaves no room"""


@dataclass(slots=True, eq=False)
class Job:
    """Work for a thread, and who is told what came of it, in the thread of the loop."""

    who: Hashable
    work: Callable[[], Any]
    done: Callable[[Any], None]
    """gets the result or the error, once; None where the work was not wanted any more"""
    wanted: Callable[[], bool] = lambda: True
    since: float = 0.0
    """when it began to wait; inf: it may wait as long as it is wanted"""
    begun: bool = False
    """whether the request has had a thread before: then it is not turned away"""
    request: Any = None
    """what it is about, where it can be done together with others"""
    reply: Callable[[Any], Any] = lambda result: result
    """sends a result that somebody else than `work` has found"""


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
        self.longest_of: Callable[[Hashable], int] = lambda _who: longest_of_one
        """how many of a caller may wait"""
        self._running: Counter[Hashable] = Counter()
        self._at_work = 0
        self._waiting: OrderedDict[Hashable, deque[Job]] = OrderedDict()
        self._new = 0
        """of those that wait, how many have not begun: the others keep nobody new out"""

    def submit(self, job: Job) -> None:
        """Start it now or in its turn. Raises Busy, unless its request has begun before."""
        # Where a thread is free, all who wait have their share already.
        if self._at_work < self._threads and self._running[job.who] < self._most_of_one:
            self._run(job)
            return
        own = self._waiting.get(job.who)
        if not job.begun:
            if own is not None and len(own) >= self.longest_of(job.who):
                raise Busy(429)
            if self._new >= self._longest:
                raise Busy(503)
        if own is None:
            own = self._waiting[job.who] = deque()
        own.append(job)
        self._new += not job.begun

    def finished(self, job: Job) -> None:
        """A job's thread is free again: the next one's turn."""
        self._at_work -= 1
        self._running[job.who] -= 1
        if not self._running[job.who]:
            del self._running[job.who]
        while self._at_work < self._threads and self._run_next():
            pass

    def is_awaited(self) -> bool:
        """Tell whether a job waits for a thread."""
        return bool(self._waiting)

    def expired(self, before: float) -> list[Job]:
        """Take those out that have waited since before that time."""
        late = [job for own in self._waiting.values() for job in own if job.since < before]
        for who in {job.who for job in late}:
            left = deque(job for job in self._waiting[who] if job.since >= before)
            if left:
                self._waiting[who] = left
            else:
                del self._waiting[who]
        self._new -= sum(not job.begun for job in late)
        return late

    def _run_next(self) -> bool:
        for who, own in self._waiting.items():
            if self._running[who] >= self._most_of_one:
                continue
            job = own.popleft()
            self._new -= not job.begun
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
    """What is held for callers, counted in all and for each of them: bytes, or reads."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
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


class Holding:
    """What one connection holds of a budget, and for whom."""

    __slots__ = ("_budget", "_size", "_who")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._who: Hashable = None
        self._size = 0

    def become(self, who: Hashable, size: int) -> None:
        """Hold so many for that caller from now on. Raises Busy: then all is as it was."""
        if who == self._who and size <= self._size:
            self.shrink(size)
            return
        own = self._size if who == self._who else 0
        if size > own:
            self._budget.take(who, size - own)
        self.shrink(own)
        self._who, self._size = who, size

    def shrink(self, size: int) -> None:
        """Hold no more than that."""
        if size < self._size:
            self._budget.give(self._who, self._size - size)
            self._size = size

    def give_back(self) -> None:
        """Hold nothing."""
        self.shrink(0)
