"""The living workers of a pool: one for each tenant, and no more than may be."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import NamedTuple

from sandbox.host.exclusion import Exclusion
from sandbox.host.spare import Spare
from sandbox.host.usage import Usage
from sandbox.host.worker_client import WorkerClient


class ProcessKey(NamedTuple):
    """Whose process it is, and whether it is the one for what is run beside."""

    tenant: str
    beside: bool = False


class Workers(OrderedDict[ProcessKey, WorkerClient]):
    """Workers by what they are for, in order of last use: the longest unused is the first."""

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

    def of(self, process: ProcessKey) -> WorkerClient:
        """Return the worker, which no other tenant has had or will have, or start one.

        The process has a turn. Raises InfraError.
        """
        now = time.monotonic()
        worker = self.get(process)
        if worker is not None:
            self.move_to_end(process)
            if self._serves(worker, now):
                return worker
            self.end(process)
        if self._takes_over_first(process, now):
            return self[process]
        self._make_room(now)
        with self._exclusion.elsewhere():
            worker = self._spare.take()
        self[process] = worker
        return worker

    def is_ready(self, process: ProcessKey) -> bool:
        """Tell whether a frame of this process need not wait for the start of one.

        As far as is known: it may have ended.
        """
        worker = self.get(process)
        if worker is None or worker.full():
            return False
        return not self._is_idle(worker, time.monotonic())

    def promote(self, process: ProcessKey) -> None:
        """Let a process for what is run beside be the tenant's first one, if it has none.

        So a tenant met beside others is served with them from then on, and no process is started
        for it a second time. The process has a turn.
        """
        first = ProcessKey(process.tenant)
        if process.beside and process in self and first not in self and self._is_free(first):
            self[first] = self.pop(process)

    def _takes_over_first(self, process: ProcessKey, now: float) -> bool:
        """Let the tenant's first process be the one beside, where there is no room for another.

        Somebody else's would be ended for it, whose next frame would end this one.
        """
        first = ProcessKey(process.tenant)
        worker = self.get(first)
        if not process.beside or worker is None or len(self) < self._max_workers:
            return False
        if not self._is_free(first) or not self._serves(worker, now):
            return False
        self[process] = self.pop(first)
        return True

    def _serves(self, worker: WorkerClient, now: float) -> bool:
        return not self._is_idle(worker, now) and worker.alive() and not worker.full()

    def _is_free(self, process: ProcessKey) -> bool:
        return not self._exclusion.has(process)

    def end(self, process: ProcessKey) -> None:
        """End a worker, and charge its tenant for what it has used."""
        worker = self.pop(process)
        worker.kill()
        self._usage.charge(process.tenant, worker.take_used().total)

    def _make_room(self, now: float) -> None:
        """End workers that are idle or too many."""
        for process, worker in list(self.items()):
            if not self._is_idle(worker, now) and len(self) < self._max_workers:
                return
            if self._is_free(process):
                self.end(process)

    def _is_idle(self, worker: WorkerClient, now: float) -> bool:
        return now - worker.last_used > self._idle_seconds
