"""Frames of one tenant: asked until there is an answer, with the blame where it belongs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sandbox.host.allowance import Allowance, TookTooLong
from sandbox.host.apart import TOGETHER, Apart
from sandbox.host.exclusion import Exclusion
from sandbox.host.frames import (
    MAX_BYTES,
    ended_step,
    first_bytes,
    is_step,
    is_too_large,
    most_bytes,
    woken,
)
from sandbox.host.grown import Part
from sandbox.host.knowledge import Definition, Sizes
from sandbox.host.options import SandboxOptions
from sandbox.host.refusals import KILL_CLASS, Refusals
from sandbox.host.usage import Usage
from sandbox.host.worker_client import AT_FIRST, Budget, Failure, WorkerClient
from sandbox.host.workers import Workers
from sandbox.trees import Call, Grown

MAX_BUDGET_MS = 1000.0
"""Of a frame."""

BEGIN_MS = 40
"""No tree is begun after so many milliseconds of a frame, except the first one: a frame ends
soon, however slow its programs are, and what is left of it comes in another."""

BYTES_A_MS = 16 * 1024
"""A tree that is larger than a frame has a millisecond more for each of these: they have to be
read before any code runs."""

PATIENCE = (AT_FIRST, 2, 4)
"""So many budgets of wall time are tried while the machine does not give the worker one of the
processor's; the last verdict counts."""

T = TypeVar("T")


@dataclass(slots=True)
class Shared:
    """What all calls of a pool have in common. Its exclusion is held."""

    options: SandboxOptions
    workers: Workers
    exclusion: Exclusion
    usage: Usage
    refusals: Refusals
    sizes: Sizes = field(default_factory=Sizes)
    apart: Apart = field(default_factory=Apart)
    frames: int = 0
    """run so far"""
    kills: Counter[str] = field(default_factory=Counter)
    """processes that were ended for what ran in them, by kind"""


class Growing:
    """Grows frames in the process of a tenant, which nobody else has meanwhile."""

    def __init__(self, shared: Shared, tenant: str, allowance: Allowance) -> None:
        self._shared = shared
        self._tenant = tenant
        self._allowance = allowance
        self._failures = 0
        """of frames so far"""

    def grow(self, calls: Sequence[Call]) -> list[Grown]:
        """Grow the calls; where that fails, one by one, and no more of the one that fails."""
        first = calls[0]
        alone = len(calls) == 1 and is_step(first)
        if not alone and any(self._goes_by_steps(each) for each in calls):
            return self._without_steps(calls)
        if len(calls) > 1 and self._shared.apart.holds(self._tenant, TOGETHER):
            return self._one_by_one(calls)
        if len(calls) == 1 and is_too_large(first):
            text = f"more than {most_bytes(first)} bytes of inputs"
            return [ended_step(first, "error", text) if alone else Grown([], [], failed=True)]
        answer = self._grow_patiently(calls)
        if isinstance(answer, Failure) and len(calls) == 1 and answer.kind == "crash":
            answer = self._grow_patiently(calls)  # once may be an accident
        if not isinstance(answer, Failure):
            return [self._grown(*each) for each in zip(calls, answer, strict=True)]
        if answer.programs and self._finds_unready(calls, answer.programs):
            rest = [self._shared.refusals.applied(self._tenant, call) for call in calls]
            return self.grow(rest)
        was_killed = answer.kind in KILL_CLASS and not answer.starved
        if len(calls) > 1:
            before = self._failures
            found = self._one_by_one(calls)
            if was_killed and self._failures == before:
                self._shared.apart.failed(self._tenant, TOGETHER)
            return found
        if not alone:
            if was_killed:
                self._shared.apart.failed(self._tenant, first.wiring.id)
            return [Grown([], [], failed=True)]
        if was_killed:
            name = first.names[woken(first)]
            fault = self._shared.refusals.blame(self._tenant, name, answer)
            self._shared.apart.explained(self._tenant)
            return [ended_step(first, fault.kind, fault.message)]
        return [ended_step(first, answer.kind, answer.message)]

    def _goes_by_steps(self, call: Call) -> bool:
        """Tell whether a worker has no room for the wiring, or the region is taken apart now."""
        shared = self._shared
        return shared.sizes.is_too_large(call.wiring) or (
            shared.apart.holds(self._tenant, call.wiring.id) and not is_step(call)
        )

    def _without_steps(self, calls: Sequence[Call]) -> list[Grown]:
        """Grow the calls that may be grown whole; the others go step by step."""
        return [
            Grown([], [], failed=True) if self._goes_by_steps(each) else self.grow([each])[0]
            for each in calls
        ]

    def _one_by_one(self, calls: Sequence[Call]) -> list[Grown]:
        return [self.grow([call])[0] for call in calls]

    def _grown(self, call: Call, part: Part) -> Grown:
        """Return what came of a call. Before a tree that failed, what the others make.

        Asked again, an honest worker has no other that fails.
        """
        if part.failed > 0:
            before = replace(call, trees=call.trees[: part.failed])
            answer = self._grow_patiently([before])
            if isinstance(answer, Failure):
                return Grown([], [], failed=True)
            part = answer[0]
        if part.failed >= 0:
            return Grown([], [], failed=True)
        return Grown(part.made, part.ended)

    def _finds_unready(self, calls: Sequence[Call], programs: Sequence[Definition]) -> bool:
        """Make programs ready one by one, and tell whether there are any that cannot be."""
        found = False
        for program in programs:
            answer = self._make_ready(program)
            if answer and answer.kind == "crash":  # once may be an accident
                answer = self._make_ready(program)
            if answer and not answer.starved:
                refusals, tenant = self._shared.refusals, self._tenant
                refusals.blame_unready(tenant, calls, program.name, answer)
                self._shared.apart.explained(tenant)
                found = True
        return found

    def _make_ready(self, program: Definition) -> Failure | None:
        def ask(worker: WorkerClient, budget: Budget) -> Failure | None:
            return worker.make_ready(program, budget, self._allowance)

        return self._ask_patiently(self._shared.options.budget_ms, ask)

    def _grow_patiently(self, calls: Sequence[Call]) -> list[Part] | Failure:
        def ask(worker: WorkerClient, budget: Budget) -> list[Part] | Failure:
            return worker.grow(calls, BEGIN_MS, budget, self._allowance)

        answer = self._ask_patiently(self._milliseconds(calls), ask, calls)
        if not isinstance(answer, Failure):
            self._shared.refusals.note_survivors(calls, answer)
            region = TOGETHER if len(calls) > 1 else calls[0].wiring.id
            self._shared.apart.grew(self._tenant, region)
        return answer

    def _milliseconds(self, calls: Sequence[Call]) -> float:
        """Return how long a frame of these calls may take."""
        base, more = self._shared.options.budget_ms, self._shared.options.budget_ms_per_update
        if len(calls) == 1 and len(calls[0].trees) == 1:
            base += max(0, first_bytes(calls[0]) - MAX_BYTES) / BYTES_A_MS
        if len(calls) == 1 and is_step(calls[0]):
            return base + more
        steps = sum([len(call.trees) * len(call.wiring.nodes) for call in calls])
        return max(base, min(base + BEGIN_MS + more * steps, MAX_BUDGET_MS))

    def _ask_patiently(
        self,
        milliseconds: float,
        ask: Callable[[WorkerClient, Budget], T | Failure],
        calls: Sequence[Call] = (),
    ) -> T | Failure:
        """Ask again, with more time, a worker that was given too little of the processor."""
        minimum = max(1, int(self._shared.options.budget_ms))
        for factor in PATIENCE:
            budget = Budget(max(1, int(milliseconds)), minimum, factor)
            answer = self._ask(ask, budget, calls)
            if not isinstance(answer, Failure) or not answer.starved:
                break
        return answer

    def _ask(
        self,
        ask: Callable[[WorkerClient, Budget], T | Failure],
        budget: Budget,
        calls: Sequence[Call],
    ) -> T | Failure:
        """Ask the tenant's worker once, and charge the tenant for it, whatever comes of it."""
        shared = self._shared
        worker = shared.workers.of(self._tenant)
        shared.frames += 1
        parts: Any = ()
        try:
            with shared.exclusion.elsewhere():
                answer = ask(worker, budget)
            if isinstance(answer, Failure):
                shared.kills[answer.kind] += 1
                self._failures += 1
            elif calls:
                parts = answer
            return answer
        except TookTooLong:
            raise  # between two frames, or the worker is dead
        except BaseException:  # an answer may be under way that is nobody's
            worker.kill()
            raise
        finally:
            used = worker.take_used()
            shared.usage.charge(self._tenant, used.total, calls, parts)
            self._allowance.used = self._allowance.used.plus(used)
            if worker.ended and shared.workers.get(self._tenant) is worker:
                del shared.workers[self._tenant]
