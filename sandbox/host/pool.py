"""Trees in, updates out: one process per tenant, and the blame where it belongs."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from sandbox.host.allowance import Allowance, TookTooLong
from sandbox.host.approval import Approval
from sandbox.host.breaker import Breaker, Suspension
from sandbox.host.checking import Checking
from sandbox.host.exclusion import Exclusion
from sandbox.host.frames import MAX_BYTES, ended_step, frames, is_step, is_too_large, woken
from sandbox.host.grown import Part
from sandbox.host.knowledge import Definition, Sizes
from sandbox.host.options import SandboxOptions
from sandbox.host.refusals import KILL_CLASS, Refusals
from sandbox.host.spare import Spare
from sandbox.host.usage import Usage
from sandbox.host.worker_client import Budget, Failure, WorkerClient
from sandbox.host.workers import BESIDE, Workers
from sandbox.host.zygote_client import ZygoteClient
from sandbox.program import Program
from sandbox.trees import Call, Grown

MAX_BUDGET_MS = 1000.0
"""Of a frame."""

BEGIN_MS = 40
"""No tree is begun after so many milliseconds of a frame, except the first one: a frame ends
soon, however slow its programs are, and what is left of it comes in another."""

PATIENCE = (1, 2, 4)
"""Budgets tried while the machine gives the worker no processor; the last verdict counts."""

T = TypeVar("T")


class SandboxPool:
    """A pool runs tenants' programs, each tenant's in a process of its own.

    Nothing is started before the first use, or prepare(). Tenants' faults are values;
    InfraError means that nothing can be said about the calls and they may be tried again.
    Several threads may run calls of several tenants at once; those of one tenant wait for each
    other, but for what is run `beside`: for that the tenant has a second process. After a fork
    the child starts processes of its own.
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
        self._here = threading.local()
        """Which process the calls of this thread are run in."""
        options = self.options
        self._zygote = ZygoteClient(
            options.engine,
            self._javascript,
            # A worker ends itself only when we would no longer use it.
            worker_idle_seconds=options.idle_seconds + 10,
            unprotected=options.unprotected,
        )
        self._spare = Spare(self._zygote)
        self._approval = Approval(self._zygote, options.idle_seconds, turn=self._checker_turn)
        self._checking = Checking(
            self._zygote, self._spare, options.idle_seconds, options.allow_list
        )
        self._usage = Usage()
        self._sizes = Sizes()
        self._workers = Workers(
            self._spare, self._usage, self._exclusion, options.max_workers, options.idle_seconds
        )
        self._frames = 0
        self._kills: Counter[str] = Counter()
        self._breaker = Breaker()
        allowed = self._approval if options.allow_list else None
        self._refusals = Refusals(allowed, self._breaker, self._usage)

    def prepare(self) -> None:
        """Start what the first use would wait for. Raises InfraError."""
        with self._entered():
            with self._exclusion.elsewhere():
                self._spare.prepare()
            if self.options.allow_list:
                self._approval.prepare()

    def grow(
        self,
        tenant: str,
        calls: Sequence[Call],
        within: float | None = None,
        *,
        beside: bool = False,
    ) -> list[Grown]:
        """Grow the trees of each call, or the first ones of them. Raises InfraError.

        A call of which not all trees are grown, and none failed, is to be gone on with: there
        was no time, or no room, for more. A step that ends its process is to blame for it; a
        tree of several steps that does is failed, and has to be taken step by step.

        Raises TookTooLong where all of it has taken more than `within` seconds of wall time.
        That is looked at between frames, and the last of them is given what is left, but
        no less than the base budget: so it is at most one frame too long. Whatever was
        found until then is dropped, except whom it was charged to and who ended a process.
        """
        process = tenant + BESIDE if beside else tenant
        with self._entered(), self._exclusion.of(process):
            self._here.process = process
            allowance = Allowance(within)
            self._refusals.learn(tenant, calls, allowance)
            return [
                each
                for frame in frames([self._refusals.applied(tenant, call) for call in calls])
                for each in self._grow_isolated(tenant, frame, allowance)
            ]

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

    def _grow_isolated(
        self, tenant: str, calls: Sequence[Call], allowance: Allowance
    ) -> list[Grown]:
        """Grow the calls; where that fails, one by one, and no more of the one that fails."""
        first = calls[0]
        alone = len(calls) == 1 and is_step(first)
        if not alone and any(self._sizes.is_too_large(each.wiring) for each in calls):
            return self._without_too_large(tenant, calls, allowance)
        if len(calls) == 1 and is_too_large(first):
            text = f"more than {MAX_BYTES} bytes of inputs"
            return [ended_step(first, "error", text) if alone else Grown([], [], failed=True)]
        answer = self._grow_patiently(tenant, calls, allowance)
        if isinstance(answer, Failure) and len(calls) == 1 and answer.kind == "crash":
            answer = self._grow_patiently(tenant, calls, allowance)  # once may be an accident
        if not isinstance(answer, Failure):
            return [
                self._grown(tenant, *each, allowance) for each in zip(calls, answer, strict=True)
            ]
        if answer.programs and self._finds_unready(tenant, calls, answer.programs, allowance):
            rest = [self._refusals.applied(tenant, call) for call in calls]
            return self._grow_isolated(tenant, rest, allowance)
        if len(calls) > 1:
            return [self._grow_isolated(tenant, [call], allowance)[0] for call in calls]
        if not alone:
            return [Grown([], [], failed=True)]
        if answer.kind in KILL_CLASS and not answer.starved:
            fault = self._refusals.blame(tenant, first.names[woken(first)], answer)
            return [ended_step(first, fault.kind, fault.message)]
        return [ended_step(first, answer.kind, answer.message)]

    def _without_too_large(
        self, tenant: str, calls: Sequence[Call], allowance: Allowance
    ) -> list[Grown]:
        """Grow the calls whose wirings a worker has room for; the others go step by step."""
        return [
            Grown([], [], failed=True)
            if self._sizes.is_too_large(each.wiring)
            else self._grow_isolated(tenant, [each], allowance)[0]
            for each in calls
        ]

    def _grown(self, tenant: str, call: Call, part: Part, allowance: Allowance) -> Grown:
        """Return what came of a call. Before a tree that failed, what the others make.

        Asked again, an honest worker has no other that fails.
        """
        if part.failed > 0:
            before = replace(call, trees=call.trees[: part.failed])
            answer = self._grow_patiently(tenant, [before], allowance)
            if isinstance(answer, Failure):
                return Grown([], [], failed=True)
            part = answer[0]
        if part.failed >= 0:
            return Grown([], [], failed=True)
        return Grown(part.made, part.ended)

    def _finds_unready(
        self,
        tenant: str,
        calls: Sequence[Call],
        programs: Sequence[Definition],
        allowance: Allowance,
    ) -> bool:
        """Make programs ready one by one, and tell whether there are any that cannot be."""
        found = False
        for program in programs:
            answer = self._make_ready(tenant, program, allowance)
            if answer and answer.kind == "crash":  # once may be an accident
                answer = self._make_ready(tenant, program, allowance)
            if answer and not answer.starved:
                self._refusals.blame_unready(tenant, calls, program.name, answer)
                found = True
        return found

    def _make_ready(
        self, tenant: str, program: Definition, allowance: Allowance
    ) -> Failure | None:
        def ask(worker: WorkerClient, budget: Budget) -> Failure | None:
            return worker.make_ready(program, budget, allowance)

        return self._ask_patiently(tenant, self.options.budget_ms, ask)

    def _grow_patiently(
        self, tenant: str, calls: Sequence[Call], allowance: Allowance
    ) -> list[Part] | Failure:
        def ask(worker: WorkerClient, budget: Budget) -> list[Part] | Failure:
            return worker.grow(calls, BEGIN_MS, budget, allowance)

        answer = self._ask_patiently(tenant, self._milliseconds(calls), ask, calls)
        if not isinstance(answer, Failure):
            self._refusals.note_survivors(calls, answer)
        return answer

    def _milliseconds(self, calls: Sequence[Call]) -> float:
        """Return how long a frame of these calls may take."""
        base, more = self.options.budget_ms, self.options.budget_ms_per_update
        if len(calls) == 1 and is_step(calls[0]):
            return base + more
        steps = sum([len(call.trees) * len(call.wiring.nodes) for call in calls])
        return max(base, min(base + BEGIN_MS + more * steps, MAX_BUDGET_MS))

    def _ask_patiently(
        self,
        tenant: str,
        milliseconds: float,
        ask: Callable[[WorkerClient, Budget], T | Failure],
        calls: Sequence[Call] = (),
    ) -> T | Failure:
        """Ask again, with more time, a worker that was given no processor."""
        minimum = max(1, int(self.options.budget_ms))
        for factor in PATIENCE:
            budget = Budget(max(1, int(milliseconds * factor)), minimum)
            answer = self._ask(tenant, ask, budget, calls)
            if not isinstance(answer, Failure) or not answer.starved:
                break
        return answer

    def _ask(
        self,
        tenant: str,
        ask: Callable[[WorkerClient, Budget], T | Failure],
        budget: Budget,
        calls: Sequence[Call],
    ) -> T | Failure:
        """Ask the tenant's worker once, and charge the tenant for it, whatever comes of it."""
        process: str = self._here.process
        worker = self._workers.of(process)
        self._frames += 1
        parts: Any = ()
        try:
            with self._exclusion.elsewhere():
                answer = ask(worker, budget)
            if isinstance(answer, Failure):
                self._kills[answer.kind] += 1
            elif calls:
                parts = answer
            return answer
        except TookTooLong:
            raise  # between two frames, or the worker is dead
        except BaseException:  # an answer may be under way that is nobody's
            worker.kill()
            raise
        finally:
            self._usage.charge(tenant, worker.take_cpu(), calls, parts)
            if worker.ended and self._workers.get(process) is worker:
                del self._workers[process]
