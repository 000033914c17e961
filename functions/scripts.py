"""Procedures in JavaScript, each instance's in a process of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from functions.steps import LATER_MS, Failure, Result, Task, held_ms
from sandbox import InfraError, ProcessorSeconds
from sandbox.trees import Call, Grown
from servioticy.domain.workflows.programs import call_of, made_of
from servioticy.ports.atoms import Atom

HOPELESS = frozenset({"syntax", "policy"})
"""Kinds of faults that another attempt would end with as well."""


class Evaluates(Protocol):
    """Runs programs: `JavaScript` does."""

    def evaluate(
        self, tenant: str, calls: Sequence[Call], within: float | None = None
    ) -> list[Grown]:
        """What came of each call."""

    def processor_seconds(self, tenant: str) -> ProcessorSeconds:
        """What this place has taken of the processor."""


class Scripts:
    """The step that runs code."""

    def __init__(self, evaluator_of: Callable[[int], Evaluates]) -> None:
        """`evaluator_of` returns one whose scripts have so many MiB: each is asked for once."""
        self._evaluator_of = evaluator_of
        self._lock = threading.Lock()
        self._evaluators: dict[int, Evaluates] = {}

    def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
        """Make of each atom what the code makes of it."""
        procedure = task.workflow.procedures[task.queue.step]
        evaluator = self._evaluator(procedure.memory_mib)
        before, began = evaluator.processor_seconds(task.place).total, time.monotonic()
        calls = [call_of(procedure.code, each.body, each.entered_ms) for each in atoms]
        try:
            grown = evaluator.evaluate(task.place, calls)
        except InfraError:
            return Result(later=dict.fromkeys([each.id for each in atoms], LATER_MS))
        done: dict[int, Sequence[bytes]] = {}
        failed = {}
        for atom, each in zip(atoms, grown, strict=True):
            made = made_of(each)
            if made.kind and made.kind != "filtered":
                reason = f"{made.kind}: {made.reason}"
                failed[atom.id] = Failure(reason, made.kind in HOPELESS)
            else:
                done[atom.id] = made.atoms
        used = max(0.0, evaluator.processor_seconds(task.place).total - before)
        held = held_ms(began) * procedure.memory_mib
        return Result(done, failed, processor_us=int(used * 1e6), mebibyte_ms=held)

    def _evaluator(self, memory_mib: int) -> Evaluates:
        with self._lock:
            if memory_mib not in self._evaluators:
                self._evaluators[memory_mib] = self._evaluator_of(memory_mib)
            return self._evaluators[memory_mib]
