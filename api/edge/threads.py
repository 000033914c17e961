"""Threads that work on jobs; the event loop collects what came of them."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from api.edge.pools import Job


class Threads:
    """A fixed number of threads; each keeps its connection to Postgres.

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
