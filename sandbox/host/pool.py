"""Trees in, updates out: one process per tenant, and the blame where it belongs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sandbox.host.allowance import Allowance
from sandbox.host.approval import Approval
from sandbox.host.breaker import Breaker
from sandbox.host.checking import Checking
from sandbox.host.exclusion import Exclusion
from sandbox.host.frames import frames
from sandbox.host.growing import Growing, Shared
from sandbox.host.options import SandboxOptions
from sandbox.host.refusals import Refusals
from sandbox.host.spare import Spare
from sandbox.host.usage import ProcessorSeconds, Usage
from sandbox.host.worker_client import WorkerClient
from sandbox.host.workers import Workers
from sandbox.host.zygote_client import ZygoteClient
from sandbox.program import Program
from sandbox.suspension import Suspension
from sandbox.trees import Call, Grown


class SandboxPool:
    """A pool runs tenants' programs, each tenant's in a process of its own.

    Nothing is started before the first use, or prepare(). Tenants' faults are values;
    InfraError means that nothing can be said about the calls and they may be tried again.
    Several threads may run calls of several tenants at once; those of one tenant wait for each
    other. After a fork the child starts processes of its own.
    """

    def __init__(self, javascript: Path, options: SandboxOptions | None = None) -> None:
        """`javascript` is the folder with the files of third_party.py."""
        self._javascript = javascript.absolute()  # processes are started in another folder
        self.options = options or SandboxOptions()
        """How this pool runs; it does not change."""
        self._begin()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._exclusion = Exclusion()
        options = self.options
        self._zygote = ZygoteClient(
            options.engine,
            self._javascript,
            # A worker ends itself only when we would no longer use it.
            worker_idle_seconds=options.idle_seconds + 10,
            unprotected=options.unprotected,
            clock=options.clock,
            nice=options.nice,
            heap_mib=options.heap_mib,
        )
        self._spare = Spare(self._zygote)
        self._approval = Approval(self._zygote, options.idle_seconds, turn=self._checker_turn)
        self._checking = Checking(
            self._zygote, self._spare, options.idle_seconds, options.allow_list
        )
        self._usage = Usage()
        self._workers = Workers(
            self._spare, self._usage, self._exclusion, options.max_workers, options.idle_seconds
        )
        self._breaker = Breaker()
        allowed = self._approval if options.allow_list else None
        refusals = Refusals(allowed, self._breaker, self._usage)
        self._shared = Shared(options, self._workers, self._exclusion, self._usage, refusals)

    def prepare(self) -> None:
        """Start what the first use would wait for. Raises InfraError."""
        with self._entered():
            with self._exclusion.elsewhere():
                self._spare.prepare()
            if self.options.allow_list:
                self._approval.prepare()

    def grow(self, tenant: str, calls: Sequence[Call], within: float | None = None) -> list[Grown]:
        """Grow the trees of each call, or the first ones of them. Raises InfraError.

        A call of which not all trees are grown, and none failed, is to be gone on with: there
        was no time, or no room, for more. A step that ends its process is to blame for it; a
        tree of several steps that does is failed, and has to be taken step by step.

        Raises TookTooLong where all of it has taken more than `within` seconds of wall time.
        That is looked at between frames, and the last of them is given what is left, but
        no less than the base budget: so it is at most one frame too long. Whatever was
        found until then is dropped, except whom it was charged to and who ended a process.
        """
        allowance = Allowance(within)
        with self._entered(), self._exclusion.of(tenant):
            refusals = self._shared.refusals
            growing = Growing(self._shared, tenant, allowance)
            try:
                refusals.learn(tenant, calls, allowance)
                return [
                    each
                    for frame in frames([refusals.applied(tenant, call) for call in calls])
                    for each in growing.grow(frame)
                ]
            finally:
                self._usage.note_growing(tenant, allowance.used)

    def is_ready(self, tenant: str) -> bool:
        """Tell whether the tenant's trees need not wait for the start of a process."""
        with self._entered():
            return self._workers.is_ready(tenant)

    def end_idle(self) -> int:
        """Forget workers that have not been used for long; return how many these were."""
        with self._entered():
            return self._workers.end_idle()

    def check(self, program: Program) -> list[str]:
        """Return a program's problems, each as "channel X: line L, column C: reason".

        None of the code is used. Columns are of the program's text, in which references are
        already names.
        """
        return self.check_all([program])[0]

    def check_all(
        self,
        programs: Sequence[Program],
        within: float | None = None,
        tenant: str = "",
        patience: float | None = None,
    ) -> list[list[str]]:
        """Return each program's problems: those of the allow-list, or else those of the engine.

        The engine looks in a process that is ended afterwards. Several threads may ask at
        once, and tenants take turns. Raises TookTooLong where it takes more than `within`
        seconds of wall time, waiting for others included.

        A tenant that has used up what it may take at once waits for what nobody else wants:
        for so long as the caller has `patience`. Then HadToWait is raised; tried again, it goes
        on where it was.
        """
        self._entered()
        return self._checking.problems(tenant, programs, Allowance(within), patience)

    def layers(self) -> dict[str, str]:
        """Return what protects a worker here: each layer with "", or with why it is missing.

        Raises InfraError where a worker would not serve.
        """
        with self._entered():
            worker = WorkerClient(self._zygote).ready()
            worker.kill()
            return worker.layers

    def cpu_seconds(self) -> dict[str, float]:
        """Return the processor seconds used so far, by tenant."""
        with self._entered():
            return dict(self._usage.tenants)

    def cpu_seconds_of(self, tenant: str) -> float:
        """Return those of one tenant; less than before, where they were forgotten in between."""
        with self._entered():
            return self._usage.tenants.get(tenant, 0.0)

    def growing_seconds_of(self, tenant: str) -> ProcessorSeconds:
        """Return what its trees took so far; none once forgotten."""
        with self._entered():
            return self._usage.growing.get(tenant, ProcessorSeconds())

    def program_cpu_seconds(self) -> dict[str, float]:
        """Return the processor seconds used so far, by program; a frame's are shared out."""
        with self._entered():
            return dict(self._usage.programs)

    @property
    def frames(self) -> int:
        """Return how many frames were run so far. Does not wait for what runs."""
        return self._shared.frames

    @property
    def workers(self) -> int:
        """Return how many processes tenants have now. Does not wait for what runs."""
        return len(self._workers)

    @property
    def kills(self) -> dict[str, int]:
        """Return how many processes were ended for what ran in them so far, by kind."""
        return dict(self._shared.kills)

    def suspended(self) -> dict[str, Suspension]:
        """Return the programs that do not run as they have ended too many processes, by id."""
        with self._entered():
            return self._breaker.all()

    def close(self) -> None:
        """End every process. The pool may be used again, and starts new ones."""
        with self._entered():
            for tenant in list(self._workers):
                self._workers.end(tenant)
            self._approval.close()
            self._checking.close()
            self._spare.close()
            self._zygote.close()

    @contextmanager
    def _checker_turn(self) -> Iterator[None]:
        with self._exclusion.of(self._approval), self._exclusion.elsewhere():
            yield

    def _entered(self) -> Exclusion:
        if os.getpid() != self._owner:
            for worker in self._workers.values():
                worker.abandon()
            self._approval.abandon()
            self._checking.abandon()
            self._spare.abandon()
            self._zygote.abandon()
            self._begin()
        return self._exclusion
