"""Calls in, outcomes out: one process per tenant, and the blame where it belongs."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sandbox.host.allowance import Allowance, TookTooLong
from sandbox.host.approval import Approval
from sandbox.host.breaker import Breaker, Suspension
from sandbox.host.checking import Checking
from sandbox.host.fold import MAX_BYTES, MAX_STEPS, LastOutput, groups, part, refused, runs, size
from sandbox.host.options import SandboxOptions
from sandbox.host.usage import Usage
from sandbox.host.worker_client import Budget, Failure, WorkerClient
from sandbox.host.workers import Workers
from sandbox.host.zygote_client import ZygoteClient
from sandbox.program import Call, Fault, Outcome, Program

MAX_BUDGET_MS = 1000.0
KILL_CLASS = frozenset({"timeout", "oom", "crash"})

PATIENCE = (1, 2, 4)
"""Budgets tried while the machine gives the worker no processor; the last verdict counts."""


class SandboxPool:
    """A pool runs tenants' programs, each tenant's in a process of its own.

    Nothing is started before the first use. Tenants' faults are values; InfraError means
    that nothing can be said about the calls and they may be tried again. One thread at a
    time runs calls: others wait. After a fork the child starts processes of its own.
    """

    def __init__(self, javascript: Path, options: SandboxOptions | None = None) -> None:
        """`javascript` is the folder with the files of third_party.py."""
        self._javascript = javascript.absolute()  # processes are started in another folder
        self.options = options or SandboxOptions()
        """How this pool runs; it does not change."""
        self._begin()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        options = self.options
        self._zygote = ZygoteClient(
            options.engine,
            self._javascript,
            # A worker ends itself only when we would no longer use it.
            worker_idle_seconds=options.idle_seconds + 10,
            unprotected=options.unprotected,
        )
        self._approval = Approval(self._zygote, options.idle_seconds)
        self._checking = Checking(self._zygote, options.idle_seconds, options.allow_list)
        self._usage = Usage()
        self._workers = Workers(
            self._zygote, self._usage, options.max_workers, options.idle_seconds
        )
        self._frames = 0
        self._kills: Counter[str] = Counter()
        self._breaker = Breaker()

    def run(
        self, tenant: str, calls: Sequence[Call], within: float | None = None
    ) -> list[list[Outcome]]:
        """Return one outcome per step of each call; None for an Assignment. Raises InfraError.

        Raises TookTooLong where all of it has taken more than `within` seconds of wall time.
        That is looked at between frames, and the last of them is given what is left, but
        no less than the base budget: so it is at most one frame too long. Whatever was
        found until then is dropped, except whom it was charged to and who ended a process.
        """
        with self._entered():
            allowance = Allowance(within)
            if self.options.allow_list:
                self._learn(tenant, [call.program for call in calls], allowance)
            outcomes: dict[int, list[Outcome]] = {}
            running: list[Call] = []
            for at, call in enumerate(calls):
                fault = self._refusal(tenant, call.program, allowance)
                if fault:
                    outcomes[at] = refused(call, fault)
                else:
                    running.append(call)
            settled = iter(
                [
                    each
                    for group in groups(running)
                    for each in self._run_isolated(tenant, group, allowance)
                ]
            )
            return [outcomes[at] if at in outcomes else next(settled) for at in range(len(calls))]

    def check(self, program: Program) -> list[str]:
        """Return a program's problems, each as "channel X: line L, column C: reason".

        None of the code is used. Columns are of the program's text, in which references are
        already names.
        """
        return self.check_all([program])[0]

    def check_all(
        self, programs: Sequence[Program], within: float | None = None
    ) -> list[list[str]]:
        """Return each program's problems: those of the allow-list, or else those of the engine.

        The engine looks in a process that is ended afterwards. Several threads may ask at
        once. Raises TookTooLong where it takes more than `within` seconds of wall time,
        waiting for others included.
        """
        self._entered()
        return self._checking.problems(programs, Allowance(within))

    def layers(self) -> dict[str, str]:
        """Return what protects a worker here: each layer with "", or with why it is missing.

        Raises InfraError where a worker would not serve.
        """
        with self._entered():
            worker = WorkerClient(self._zygote)
            worker.kill()
            return worker.layers

    def cpu_seconds(self) -> dict[str, float]:
        """Return the processor seconds used so far, by tenant."""
        with self._entered():
            return dict(self._usage.tenants)

    def program_cpu_seconds(self) -> dict[str, float]:
        """Return the processor seconds used so far, by program; a frame's are shared out."""
        with self._entered():
            return dict(self._usage.programs)

    @property
    def frames(self) -> int:
        """Return how many frames were run so far. Does not wait for what runs."""
        return self._frames

    @property
    def kills(self) -> dict[str, int]:
        """Return how many processes were ended for what ran in them so far, by kind."""
        return dict(self._kills)

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
            self._zygote.close()

    def _entered(self) -> threading.Lock:
        if os.getpid() != self._owner:
            for worker in self._workers.values():
                worker.abandon()
            self._approval.abandon()
            self._checking.abandon()
            self._zygote.abandon()
            self._begin()
        return self._lock

    def _learn(self, tenant: str, programs: Sequence[Program], allowance: Allowance) -> None:
        try:
            self._approval.learn(programs, allowance)
        finally:
            self._usage.charge(tenant, self._approval.take_cpu())

    def _refusal(self, tenant: str, program: Program, allowance: Allowance) -> Fault | None:
        """Return why the program does not run at all; None if it does."""
        if self.options.allow_list:
            if not self._approval.knows(program):
                self._learn(tenant, [program], allowance)
            fault = self._approval.fault(program)
            if fault:
                return fault
        found = self._breaker.suspension(tenant, program.id)
        if found is None:
            return None
        times = f"{found.kills} x {found.kind}"
        return Fault("suspended", f"for {found.seconds:.0f} s, after {times}")

    def _run_isolated(
        self, tenant: str, calls: Sequence[Call], allowance: Allowance
    ) -> list[list[Outcome]]:
        """Run the calls; where that fails, run ever smaller pieces until one is to blame."""
        alone = len(calls) == 1 and len(calls[0].steps) == 1
        if alone and not runs(calls[0].steps[0], calls[0].previous_timestamp):
            return [refused(calls[0], None)]  # no worker has a say in it
        if len(calls) == 1 and (len(calls[0].steps) > MAX_STEPS or size(calls[0]) > MAX_BYTES):
            if not alone:
                return [
                    self._in_parts(tenant, calls[0], max(1, len(calls[0].steps) // 2), allowance)
                ]
            return [[Fault("error", f"more than {MAX_BYTES} bytes of inputs")]]
        if alone:
            fault = self._refusal(tenant, calls[0].program, allowance)  # since this run began
            if fault:
                return [refused(calls[0], fault)]
        answer = self._run_with_retries(tenant, calls, allowance)
        if isinstance(answer, Failure) and alone and answer.kind == "crash":
            answer = self._run_with_retries(tenant, calls, allowance)  # once may be an accident
        if not isinstance(answer, Failure):
            return answer
        if len(calls) > 1:
            return [self._run_isolated(tenant, [call], allowance)[0] for call in calls]
        if not alone:
            return [self._in_parts(tenant, calls[0], 1, allowance)]
        if answer.kind in KILL_CLASS and not answer.starved:
            return [[self._blamed(tenant, calls[0].program.id, answer)]]
        return [[Fault(answer.kind, answer.message)]]

    def _blamed(self, tenant: str, program: str, answer: Failure) -> Fault:
        """Note that a program has ended a process, and return its fault with what follows."""
        self._breaker.killed(tenant, program, answer.kind)
        found = self._breaker.suspension(tenant, program)
        sequel = f"; suspended for {found.seconds:.0f} s" if found else ""
        return Fault(answer.kind, answer.message + sequel)

    def _in_parts(
        self, tenant: str, call: Call, steps: int, allowance: Allowance
    ) -> list[Outcome]:
        """Run some steps of the call at a time, each with the last output of those before."""
        outcomes: list[Outcome] = []
        last = LastOutput(call.previous, call.previous_timestamp)
        for start in range(0, len(call.steps), steps):
            piece = part(call, start, start + steps, last)
            some = self._run_isolated(tenant, [piece], allowance)[0]
            for step, outcome in zip(call.steps[start : start + steps], some, strict=True):
                last = last.after(step, outcome, call.updates)
            outcomes += some
        return outcomes

    def _run_with_retries(
        self, tenant: str, calls: Sequence[Call], allowance: Allowance
    ) -> list[list[Outcome]] | Failure:
        base = self.options.budget_ms
        whole = base + self.options.budget_ms_per_update * sum(len(c.steps) for c in calls)
        whole = max(base, min(whole, MAX_BUDGET_MS))
        minimum = max(1, int(base))
        for factor in PATIENCE:
            budget = Budget(max(1, int(whole * factor)), minimum)
            answer = self._run_once(tenant, calls, budget, allowance)
            if not isinstance(answer, Failure):
                for call in calls:
                    self._breaker.survived(call.program.id)
                break
            if not answer.starved:
                break
        return answer

    def _run_once(
        self, tenant: str, calls: Sequence[Call], budget: Budget, allowance: Allowance
    ) -> list[list[Outcome]] | Failure:
        """Ask the tenant's worker once, and charge the tenant for it, whatever comes of it."""
        worker = self._workers.of(tenant)
        self._frames += 1
        try:
            answer = worker.run(calls, budget, allowance)
            if isinstance(answer, Failure):
                self._kills[answer.kind] += 1
            return answer
        except TookTooLong:
            raise  # between two frames, or the worker is dead
        except BaseException:  # an answer may be under way that is nobody's
            worker.kill()
            raise
        finally:
            self._usage.charge(tenant, worker.take_cpu(), calls, worker.ticks)
            if worker.ended:
                del self._workers[tenant]
