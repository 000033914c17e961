"""The living workers of a pool: one for each tenant, and no more than may be."""

from __future__ import annotations

import time
from collections.abc import Callable

from cachetools import LRUCache

from sandbox.host.exclusion import Exclusion
from sandbox.host.spare import Spare
from sandbox.host.usage import Usage
from sandbox.host.worker_client import WorkerClient

MAX_TENANTS = 10_000
"""Of so many it is known when they came."""

TOGETHER_SECONDS = 0.1
"""Within so long several uses are one: a piece may take several frames."""

NEVER = float("-inf")


class Workers(dict[str, WorkerClient]):
    """Workers by tenant.

    Where there are too many, that one is ended whose tenant's last use but one is longest ago:
    who comes often keeps its process, however many others come once in a while. By the last use
    alone a thousand that take turns would end each other's and everybody's (LRU-2: O'Neil, O'Neil
    and Weikum, The LRU-K page replacement algorithm, SIGMOD 1993).
    """

    def __init__(
        self,
        spare: Spare,
        usage: Usage,
        exclusion: Exclusion,
        max_workers: int,
        idle_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`usage` is charged with what a worker has used when it is ended.

        No worker is ended for another one while its tenant has a turn.
        """
        super().__init__()
        self._spare = spare
        self._usage = usage
        self._exclusion = exclusion
        self._max_workers = max_workers
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._uses: LRUCache[str, tuple[float, float]] = LRUCache(MAX_TENANTS)
        """When a tenant has come the last time but one, and the last time."""

    def of(self, tenant: str) -> WorkerClient:
        """Return the worker, which no other tenant has had or will have, or start one.

        The tenant has a turn. Raises InfraError.
        """
        now = self._clock()
        self._note_use(tenant, now)
        worker = self.get(tenant)
        if worker is not None:
            if self._serves(worker, now):
                return worker
            self.end(tenant)
        self._make_room()
        with self._exclusion.elsewhere():
            worker = self._spare.take()
        self[tenant] = worker
        return worker

    def is_ready(self, tenant: str) -> bool:
        """Tell whether a frame of this tenant need not wait for the start of a process.

        As far as is known: it may have ended.
        """
        worker = self.get(tenant)
        if worker is None or worker.full():
            return False
        return not self._is_idle(worker, self._clock())

    def _serves(self, worker: WorkerClient, now: float) -> bool:
        return not self._is_idle(worker, now) and worker.alive() and not worker.full()

    def end(self, tenant: str) -> None:
        """End a worker, and charge its tenant for what it has used."""
        worker = self.pop(tenant)
        worker.kill()
        self._usage.charge(tenant, worker.take_used().total)

    def end_idle(self) -> int:
        """End those that nobody has used for long, but in a turn; return how many these were.

        Their processes have ended by themselves. What each had been told is remembered here.
        """
        now = self._clock()
        free = [tenant for tenant in self if not self._exclusion.has(tenant)]
        idle = [tenant for tenant in free if self._is_idle(self[tenant], now)]
        for tenant in idle:
            self.end(tenant)
        return len(idle)

    def _note_use(self, tenant: str, now: float) -> None:
        _before, last = self._uses.get(tenant, (NEVER, NEVER))
        if now - last >= TOGETHER_SECONDS:
            self._uses[tenant] = (last, now)

    def _make_room(self) -> None:
        """End workers that are idle or too many."""
        self.end_idle()
        kept = [tenant for tenant in self if not self._exclusion.has(tenant)]
        kept.sort(key=lambda each: self._uses.get(each, (NEVER, NEVER)), reverse=True)
        while kept and len(self) >= self._max_workers:
            self.end(kept.pop())

    def _is_idle(self, worker: WorkerClient, now: float) -> bool:
        return now - worker.last_used > self._idle_seconds
