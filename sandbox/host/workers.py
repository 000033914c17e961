"""The living workers of a pool: one for each tenant, and no more than may be."""

from __future__ import annotations

import time
from collections import OrderedDict

from sandbox.host.exclusion import Exclusion
from sandbox.host.spare import Spare
from sandbox.host.usage import Usage
from sandbox.host.worker_client import WorkerClient


class Workers(OrderedDict[str, WorkerClient]):
    """Workers by tenant, in order of last use: the longest unused is the first."""

    def __init__(
        self,
        spare: Spare,
        usage: Usage,
        exclusion: Exclusion,
        max_workers: int,
        idle_seconds: float,
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

    def of(self, tenant: str) -> WorkerClient:
        """Return the worker, which no other tenant has had or will have, or start one.

        The tenant has a turn. Raises InfraError.
        """
        now = time.monotonic()
        worker = self.get(tenant)
        if worker is not None:
            self.move_to_end(tenant)
            if self._serves(worker, now):
                return worker
            self.end(tenant)
        self._make_room(now)
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
        return not self._is_idle(worker, time.monotonic())

    def _serves(self, worker: WorkerClient, now: float) -> bool:
        return not self._is_idle(worker, now) and worker.alive() and not worker.full()

    def end(self, tenant: str) -> None:
        """End a worker, and charge its tenant for what it has used."""
        worker = self.pop(tenant)
        worker.kill()
        self._usage.charge(tenant, worker.take_used().total)

    def _make_room(self, now: float) -> None:
        """End workers that are idle or too many."""
        for tenant, worker in list(self.items()):
            if not self._is_idle(worker, now) and len(self) < self._max_workers:
                return
            if not self._exclusion.has(tenant):
                self.end(tenant)

    def _is_idle(self, worker: WorkerClient, now: float) -> bool:
        return now - worker.last_used > self._idle_seconds
