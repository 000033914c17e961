"""A worker that is started before anybody needs it, so that nobody waits for its start."""

from __future__ import annotations

import contextlib
import threading

from sandbox.host.allowance import UNLIMITED, Allowance, TookTooLong
from sandbox.host.worker_client import WorkerClient
from sandbox.host.zygote_client import InfraError, ZygoteClient


class Spare:
    """One worker that has run nothing yet, for whoever needs one next. For several threads."""

    def __init__(self, zygote: ZygoteClient) -> None:
        self._zygote = zygote
        self._lock = threading.Lock()
        self._worker: WorkerClient | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the worker that waits; None if there is none."""
        worker = self._worker
        return worker.pid if worker else None

    def prepare(self) -> None:
        """Start a worker, unless one waits; its start is not waited for. Raises InfraError."""
        with self._lock:
            if self._worker is None:
                self._worker = WorkerClient(self._zygote)

    def take(self, allowance: Allowance = UNLIMITED) -> WorkerClient:
        """Return a worker that nobody has had, and start the next one. Raises InfraError.

        Raises TookTooLong where it does not serve in time: it waits for whoever comes next.
        """
        worker = self._pop()
        ready = self._begun(worker, allowance) if worker else None
        ready = ready or self._ready(WorkerClient(self._zygote), allowance)
        with contextlib.suppress(InfraError):  # who needs that one is told
            self.prepare()
        return ready

    def close(self) -> None:
        """End the worker that waits."""
        if worker := self._pop():
            worker.kill()

    def abandon(self) -> None:
        """Forget the worker without ending it: it belongs to the process we forked from.

        Where the lock may be held by a thread that is not here.
        """
        worker, self._worker = self._worker, None
        if worker:
            worker.abandon()

    def _pop(self) -> WorkerClient | None:
        with self._lock:
            worker, self._worker = self._worker, None
        return worker

    def _ready(self, worker: WorkerClient, allowance: Allowance) -> WorkerClient:
        try:
            return worker.ready(allowance)
        except TookTooLong:
            self._give_back(worker)
            raise

    def _give_back(self, worker: WorkerClient) -> None:
        with self._lock:
            if self._worker is None:
                self._worker = worker
                return
        worker.kill()

    def _begun(self, worker: WorkerClient, allowance: Allowance) -> WorkerClient | None:
        """The worker, if it serves: it may have ended since, with its zygote."""
        with contextlib.suppress(InfraError):
            if self._ready(worker, allowance).alive():
                return worker
            worker.kill()
        return None
