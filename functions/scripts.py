"""Procedures in JavaScript, each instance's in a process of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from functions.steps import LATER_MS, Failure, Result, Task, held_ms
from sandbox import InfraError, ProcessorSeconds
from sandbox.trees import Call, Grown
from servioticy.domain.workflows.model import Procedure
from servioticy.domain.workflows.programs import call_of, code_name, made_of
from servioticy.ports.atoms import Atom

HOPELESS = frozenset({"syntax", "policy"})
"""Kinds of faults that another attempt would end with as well."""
SUSPENDED, SUSPENDED_MS = "suspended", 60_000
"""Code that has ended processes does not run for a minute, or longer: its atoms wait as long."""
AT_ONCE = 20
"""Atoms of a frame: each of them may end a process, and another one has to begin then."""
WORKING_SECONDS = 5.0
"""After so long none of the atoms that were taken is begun: they are soon shown to others."""


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
        making = _Making(evaluator, task, procedure)
        for first in range(0, len(atoms), AT_ONCE):
            some = atoms[first : first + AT_ONCE]
            if first and time.monotonic() - began >= WORKING_SECONDS:
                making.put_off(some, 0)
            else:
                making.work(some)
        used = max(0.0, evaluator.processor_seconds(task.place).total - before)
        held = held_ms(began) * procedure.memory_mib
        return making.result()._replace(processor_us=int(used * 1e6), mebibyte_ms=held)

    def _evaluator(self, memory_mib: int) -> Evaluates:
        with self._lock:
            if memory_mib not in self._evaluators:
                self._evaluators[memory_mib] = self._evaluator_of(memory_mib)
            return self._evaluators[memory_mib]


class _Making:
    """Of one task."""

    def __init__(self, evaluator: Evaluates, task: Task, procedure: Procedure) -> None:
        self._evaluator = evaluator
        self._task = task
        self._code = procedure.code
        self._name = code_name(task.queue.workflow, task.queue.version, procedure.name)
        self._done: dict[int, Sequence[bytes]] = {}
        self._failed: dict[int, Failure] = {}
        self._later: dict[int, int] = {}

    def put_off(self, atoms: Sequence[Atom], pause_ms: int) -> None:
        """These have not been tried."""
        self._later |= dict.fromkeys([each.id for each in atoms], pause_ms)

    def work(self, atoms: Sequence[Atom]) -> None:
        """Ask of these together."""
        calls = [call_of(self._name, self._code, each.body, each.entered_ms) for each in atoms]
        try:
            grown = self._evaluator.evaluate(self._task.place, calls)
        except InfraError:
            self.put_off(atoms, LATER_MS)
            return
        for atom, each in zip(atoms, grown, strict=True):
            made = made_of(each)
            if made.kind == SUSPENDED:
                self.put_off([atom], SUSPENDED_MS)
            elif made.kind and made.kind != "filtered":
                reason = f"{made.kind}: {made.reason}"
                self._failed[atom.id] = Failure(reason, made.kind in HOPELESS)
            else:
                self._done[atom.id] = made.atoms

    def result(self) -> Result:
        """Return what came of all."""
        return Result(self._done, self._failed, self._later)
