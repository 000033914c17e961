"""A process that is being started: who cannot wait any longer leaves it to whoever comes next."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from sandbox.host.allowance import Allowance, TookTooLong
from sandbox.host.worker_client import WorkerClient
from sandbox.host.zygote_client import InfraError


class Starting:
    """One that starts, at most. For one thread at a time."""

    def __init__(self, start: Callable[[], WorkerClient]) -> None:
        self._start = start
        self._worker: WorkerClient | None = None

    def ready(self, allowance: Allowance) -> WorkerClient:
        """Return one that serves and that nobody has had. Raises InfraError.

        Raises TookTooLong where it does not in time: the next one who asks goes on waiting for it.
        """
        kept, self._worker = self._worker, None
        if kept:
            with contextlib.suppress(InfraError):  # it may have ended since, with its zygote
                if self._ready(kept, allowance).alive():
                    return kept
                kept.kill()
        return self._ready(self._start(), allowance)

    def _ready(self, worker: WorkerClient, allowance: Allowance) -> WorkerClient:
        try:
            return worker.ready(allowance)
        except TookTooLong:
            self._worker = worker
            raise

    def close(self) -> None:
        """End the one that starts."""
        if self._worker:
            self._worker.kill()
        self._worker = None

    def abandon(self) -> None:
        """Forget it without ending it: it belongs to the process we forked from."""
        if self._worker:
            self._worker.abandon()
        self._worker = None
