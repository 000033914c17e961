"""Calls that block, a few at a time: an owner with many calls waits for its own, not for others'.

Waiting owners are served in rotation, one call of each. So a tenant with a thousand calls
delays the single call of another tenant by one call, not by a thousand.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from delivery.admission.owner_semaphore import OwnerSemaphore

R = TypeVar("R")


class FairExecutor:
    """Runs blocking calls in its own threads. All methods belong to the event loop's thread."""

    def __init__(
        self,
        name: str,
        threads: int,
        max_waiting: int = sys.maxsize,
        max_waiting_each: int = sys.maxsize,
    ) -> None:
        self._executor = ThreadPoolExecutor(threads, name)
        self._free_threads = threads
        self._places = OwnerSemaphore(max_waiting, max_waiting_each)
        self._queues: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many calls wait for a thread."""
        return len(self._places)

    async def run(self, owner: Hashable, call: Callable[[], R]) -> R:
        """Run the call when its owner is next. Raises SemaphoreFull, and what the call raises."""
        await self._wait_for_thread(owner)
        job = asyncio.get_running_loop().run_in_executor(self._executor, call)
        job.add_done_callback(self._job_done)
        # A caller that is cancelled does not free the thread: the job occupies it to its end.
        return await asyncio.shield(job)

    async def _wait_for_thread(self, owner: Hashable) -> None:
        if self._free_threads:
            self._free_threads -= 1
            return
        self._places.acquire(owner)
        thread_free = asyncio.get_running_loop().create_future()
        self._queues.setdefault(owner, deque()).append(thread_free)
        try:
            await thread_free
        except asyncio.CancelledError:
            if not thread_free.cancelled():  # the thread became free in this very moment
                self._pass_thread_on()
            else:
                self._leave_queue(owner, thread_free)
            raise

    def _leave_queue(self, owner: Hashable, thread_free: asyncio.Future[None]) -> None:
        queue = self._queues.get(owner, deque())
        if thread_free not in queue:
            return  # it was passed over already
        queue.remove(thread_free)
        self._places.release(owner)
        if not queue:
            del self._queues[owner]

    def _job_done(self, job: asyncio.Future[R]) -> None:
        if not job.cancelled():
            job.exception()  # counts as retrieved, even where nobody waits for it any more
        self._pass_thread_on()

    def _pass_thread_on(self) -> None:
        while self._queues:
            owner, queue = self._queues.popitem(last=False)
            thread_free = queue.popleft()
            self._places.release(owner)
            if queue:
                self._queues[owner] = queue  # behind all the others
            if not thread_free.done():
                thread_free.set_result(None)
                return
        self._free_threads += 1
