"""Where scripts are waited for: in as many threads as there are processors, and a few more.

So the partition's own thread waits for nobody. What has run for a short time only has places of
its own: however many are slow, who is quick finds one. Nobody is believed to be quick for that: a
job that goes on for longer is a slow one from then on, and its place is somebody else's.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Job = Callable[[], Any]
Owner = TypeVar("Owner")

QUICK_SECONDS = 0.005
"""Who takes longer is waited for by nobody else: about what a transaction takes."""

SLOW_SECONDS = 0.01
"""Of the processor: whose updates have cost that much begin among the slow ones."""

POLL_SECONDS = 0.02
"""Between two looks, where nothing ends."""


@dataclass(slots=True, eq=False)
class _Running(Generic[Owner]):
    owner: Owner
    future: Future[Any]
    began: float
    is_slow: bool


class Slots(Generic[Owner]):
    """Jobs by their owners, each of which has one at a time."""

    def __init__(
        self,
        executor: Executor,
        processors: int,
        clock: Callable[[], float] = time.monotonic,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """The executor has `threads_for(processors)`; `wake` is called when a job has ended and
        nobody waits for that here."""
        self._executor = executor
        self._processors = processors
        self._clock = clock
        self._wake = wake
        self._quick: deque[tuple[Owner, Job]] = deque()
        self._slow: deque[tuple[Owner, Job]] = deque()
        self._running: list[_Running[Owner]] = []
        self._ended = threading.Event()
        self._is_waiting = False

    def give(self, owner: Owner, job: Job, *, is_slow: bool) -> None:
        """Have a job done as soon as there is a place; `is_slow`: it will take its time."""
        (self._slow if is_slow else self._quick).append((owner, job))
        self._start()

    def ended(self) -> Sequence[tuple[Owner, Future[Any]]]:
        """Return what has ended since this was last asked."""
        self._ended.clear()
        found = [each for each in self._running if each.future.done()]
        if found:
            self._running = [each for each in self._running if each not in found]
        self._start()
        return [(each.owner, each.future) for each in found]

    def has_place(self, owner: Owner) -> bool:
        """Whether the owner's job is being done."""
        return any(each.owner is owner for each in self._running)

    def wait(self, seconds: float) -> None:
        """Until a job has ended, or a place may be somebody else's; at most for so long."""
        if self._quick:
            seconds = min(seconds, QUICK_SECONDS)
        self._is_waiting = True
        if not any(each.future.done() for each in self._running):
            self._ended.wait(max(0.0, min(seconds, POLL_SECONDS)))
        self._is_waiting = False

    def drop(self, owner: Owner) -> None:
        """Forget the owner's job; what comes of it is nobody's."""
        self._running = [each for each in self._running if each.owner is not owner]
        self._quick = deque(each for each in self._quick if each[0] is not owner)
        self._slow = deque(each for each in self._slow if each[0] is not owner)

    def _start(self) -> None:
        """Begin with jobs that wait, while there are places."""
        if not self._quick and not self._slow:
            return
        quick = sum([not self._takes_long(each) for each in self._running])
        slow = len(self._running) - quick
        while self._quick and quick < self._processors and quick + slow < self._most:
            self._begin(self._quick, is_slow=False)
            quick += 1
        while self._slow and slow < max(1, self._processors - 1):
            self._begin(self._slow, is_slow=True)
            slow += 1

    @property
    def _most(self) -> int:
        return threads_for(self._processors)

    def _takes_long(self, job: _Running[Owner]) -> bool:
        return job.is_slow or self._clock() - job.began >= QUICK_SECONDS

    def _begin(self, queue: deque[tuple[Owner, Job]], *, is_slow: bool) -> None:
        owner, job = queue.popleft()
        began = self._clock()
        future = self._executor.submit(job)
        self._running.append(_Running(owner, future, began, is_slow))
        future.add_done_callback(self._note_end)

    def _note_end(self, _future: Future[Any]) -> None:
        """In whichever thread it was."""
        self._ended.set()
        if not self._is_waiting:
            self._wake()


def threads_for(processors: int) -> int:
    """Return how many jobs may run at once: those that turned out to be slow, too."""
    return 3 * processors
