"""Threads that work on jobs; the event loop collects what came of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from api.edge.pools import Job
from servioticy.gathering import Gathering

MAX_TOGETHER = 64
"""Jobs that are done at once, and one."""

log = logging.getLogger("api")


class Threads:
    """A fixed number of threads.

    To wake the loop costs more than to run a small job. Where nobody waits for a result
    (the answer is sent, no job is queued) it stays until the loop has woken for another
    reason and calls `collect`.
    """

    def __init__(self, name: str, count: int, loop: asyncio.AbstractEventLoop) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._count = count
        self._results: deque[tuple[Job, Any]] = deque()
        self._loop = loop
        self.finished: Callable[[Job], None] = lambda _: None
        """told in the loop that a job's thread is free, before the job's own `done`"""
        self.is_awaited: Callable[[], bool] = lambda: True
        """whether a job waits for a free thread"""
        for number in range(count):
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True).start()

    def start(self, job: Job) -> None:
        """Let the next free thread do it."""
        self._jobs.put(job)

    def stop(self) -> None:
        """Let the threads end after what they have begun."""
        for _ in range(self._count):
            self._jobs.put(None)

    def collect(self) -> None:
        """Tell what jobs have come to since. For the event loop's thread."""
        while self._results:
            job, result = self._results.popleft()
            self.finished(job)
            job.done(result)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                result = job.work()
            except BaseException as error:  # noqa: BLE001  a thread that ended would be missed
                result = error
            self._results.append((job, result))
            # In this order: the loop first queues a job, then collects.
            if not getattr(result, "is_quiet", False) or self.is_awaited():
                with contextlib.suppress(RuntimeError):  # the loop is closed: we are stopping
                    self._loop.call_soon_threadsafe(self.collect)


class Lane(Threads):
    """A thread that does all jobs that wait together, and leaves to others what cannot be.

    A second one would take half of what waits, and both fight for the interpreter: what comes
    while the one waits for the broker goes together the next time.
    """

    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop,
        together: Callable[[list[Any]], list[Any]],
        otherwise: Callable[[Job], None],
    ) -> None:
        """`together` gives a result for each request; None: do that job `otherwise`."""
        self._together = together
        self._otherwise = otherwise
        super().__init__(name, 1, loop)

    def _work(self) -> None:
        gathering = Gathering()
        while jobs := self._taken(gathering):
            try:
                results = self._together([each.request for each in jobs])
            except Exception:
                log.exception("lane_failed", extra={"jobs": len(jobs)})
                results = [None] * len(jobs)
            self._end(jobs, results)

    def _taken(self, gathering: Gathering) -> list[Job]:
        """Take what waits, and under load what comes a little later; none: we are stopping."""
        found: list[Job] = []
        gathering.ends()
        with contextlib.suppress(queue.Empty):
            gathering.asks()
            job = self._jobs.get()
            until = gathering.until()
            while job is not None:
                found.append(job)
                if len(found) > MAX_TOGETHER:
                    break
                job = self._jobs.get(timeout=max(0.0, until - time.monotonic()))
            else:
                if found:  # for the next round
                    self._jobs.put(None)
        gathering.takes(len(found))
        return found

    def _end(self, jobs: list[Job], results: list[Any]) -> None:
        wakes = False
        for job, result in zip(jobs, results, strict=True):
            if result is None:
                self._otherwise(job)
                continue
            sent = job.reply(result)
            self._results.append((job, sent))
            wakes = wakes or not getattr(sent, "is_quiet", False)
        if wakes or self.is_awaited():
            with contextlib.suppress(RuntimeError):  # the loop is closed: we are stopping
                self._loop.call_soon_threadsafe(self.collect)
