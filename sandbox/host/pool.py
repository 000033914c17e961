"""Calls in, outcomes out: one process per tenant, and the blame where it belongs."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path

from sandbox.host.allowance import Allowance, TookTooLong
from sandbox.host.approval import Approval
from sandbox.host.breaker import Breaker, Suspension
from sandbox.host.checking import Checking
from sandbox.host.fold import LastOutput, part, refused, runs, size
from sandbox.host.options import SandboxOptions
from sandbox.host.usage import Usage
from sandbox.host.worker_client import Budget, Failure, WorkerClient
from sandbox.host.zygote_client import ZygoteClient
from sandbox.program import Call, Fault, Outcome, Program

MAX_STEPS = 1000  # in one frame
MAX_BYTES = 1024 * 1024  # in one frame
MAX_BUDGET_MS = 1000.0
KILL_CLASS = frozenset({"timeout", "oom", "crash"})

PATIENCE = (1, 2, 4)
"""Budgets tried while the machine gives the worker no processor; the last verdict counts."""


class SandboxPool:
    """Runs tenants' programs, each tenant in a process of its own.

    Nothing is started before the first use. Tenants' faults are values; InfraError means
    that nothing can be said about the calls and they may be tried again. One thread at a
    time runs calls: others wait. After a fork the child starts processes of its own.
    """

    def __init__(self, javascript: Path, options: SandboxOptions | None = None) -> None:
        """`javascript` is the folder with the files of third_party.py."""
        self._javascript = javascript.absolute()  # processes are started in another folder
        self.options = options or SandboxOptions()
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
        self._workers: OrderedDict[str, WorkerClient] = OrderedDict()
        self._approval = Approval(self._zygote, options.idle_seconds)
        self._checking = Checking(self._zygote, options.idle_seconds, options.allow_list)
        self._usage = Usage()
        self._frames = 0
        self._kills: Counter[str] = Counter()
        self._breaker = Breaker()

    def run(
        self, tenant: str, calls: Sequence[Call], within: float | None = None
    ) -> list[list[Outcome]]:
        """One outcome per step of each call; None for an Assignment. Raises InfraError.

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
                    for group in _groups(running)
                    for each in self._run_isolated(tenant, group, allowance)
                ]
            )
            return [outcomes[at] if at in outcomes else next(settled) for at in range(len(calls))]

    def check(self, program: Program) -> list[str]:
        """Problems, each "channel X: line L, column C: reason"; none of the code is used.

        Columns are of the program's text, in which references are already names.
        """
        return self.check_all([program])[0]

    def check_all(
        self, programs: Sequence[Program], within: float | None = None
    ) -> list[list[str]]:
        """For each program its problems: the allow-list's, or else the engine's.

        The engine looks in a process that is ended afterwards. Several threads may ask at
        once. Raises TookTooLong where it takes more than `within` seconds of wall time,
        waiting for others included.
        """
        self._entered()
        return self._checking.problems(programs, Allowance(within))

    def layers(self) -> dict[str, str]:
        """What protects a worker here: layer to "", or to why it is missing.

        Raises InfraError where a worker would not serve.
        """
        with self._entered():
            worker = WorkerClient(self._zygote)
            worker.kill()
            return worker.layers

    def cpu_seconds(self) -> dict[str, float]:
        """Processor seconds used so far, by tenant."""
        with self._entered():
            return dict(self._usage.tenants)

    def program_cpu_seconds(self) -> dict[str, float]:
        """Processor seconds used so far, by program id; shared out where a frame had several."""
        with self._entered():
            return dict(self._usage.programs)

    @property
    def frames(self) -> int:
        """Frames run so far. Does not wait for what runs."""
        return self._frames

    @property
    def kills(self) -> dict[str, int]:
        """Processes ended so far for what ran in them, by kind. Does not wait for what runs."""
        return dict(self._kills)

    def suspended(self) -> dict[str, Suspension]:
        """The programs that do not run because they ended too many processes, by id."""
        with self._entered():
            return self._breaker.all()

    def close(self) -> None:
        """End every process. The pool may be used again, and starts new ones."""
        with self._entered():
            for tenant in list(self._workers):
                self._end(tenant)
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
        """Why the program does not run at all, if so."""
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
        """Run the calls; if that fails, in ever smaller pieces until one is to blame."""
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
        """The fault of a program that ended a process, with what follows from it."""
        self._breaker.killed(tenant, program, answer.kind)
        found = self._breaker.suspension(tenant, program)
        sequel = f"; suspended for {found.seconds:.0f} s" if found else ""
        return Fault(answer.kind, answer.message + sequel)

    def _in_parts(
        self, tenant: str, call: Call, steps: int, allowance: Allowance
    ) -> list[Outcome]:
        """The call's outcomes, some steps at a time, the last output threaded through."""
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
        """Ask the tenant's worker; whatever comes of it is charged."""
        worker = self._worker(tenant)
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

    def _worker(self, tenant: str) -> WorkerClient:
        """The tenant's living worker, which no other tenant has had or will have."""
        now = time.monotonic()
        worker = self._workers.get(tenant)
        if worker is not None:
            self._workers.move_to_end(tenant)
            if (
                now - worker.last_used <= self.options.idle_seconds
                and worker.alive()
                and not worker.full()
            ):
                return worker
            self._end(tenant)
        self._make_room(now)
        self._workers[tenant] = worker = WorkerClient(self._zygote)
        return worker

    def _make_room(self, now: float) -> None:
        """End the idle; the first in the order is the longest unused."""
        while self._workers:
            tenant, oldest = next(iter(self._workers.items()))
            idle = now - oldest.last_used > self.options.idle_seconds
            if not idle and len(self._workers) < self.options.max_workers:
                return
            self._end(tenant)

    def _end(self, tenant: str) -> None:
        worker = self._workers.pop(tenant)
        worker.kill()
        self._usage.charge(tenant, worker.take_cpu())


def _groups(calls: Sequence[Call]) -> Iterator[list[Call]]:
    """The calls in order, in groups that fit a frame; a call too long for one is alone."""
    group: list[Call] = []
    steps = content = 0
    for call in calls:
        steps += len(call.steps)
        content += size(call)
        if group and (steps > MAX_STEPS or content > MAX_BYTES):
            yield group
            group = []
            steps, content = len(call.steps), size(call)
        group.append(call)
    if group:
        yield group
