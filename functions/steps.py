"""What a step does with atoms that were taken, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from sandbox import InfraError, ProcessorSeconds
from sandbox.trees import Call, Grown
from servioticy.domain.workflows.model import Workflow
from servioticy.domain.workflows.programs import call_of, made_of
from servioticy.ports.atoms import Atom, Look, Queue

HOPELESS = frozenset({"syntax", "policy"})
"""Kinds of faults that another attempt would end with as well."""
LATER_MS = 1_000
"""Where nobody is to blame."""


class Task(NamedTuple):
    """For whom an instance works, and where."""

    queue: Queue
    workflow: Workflow
    place: str
    """Names the tenant's sandbox process that the instance has for itself."""


class Failure(NamedTuple):
    """Why an atom was not worked on to its end."""

    reason: str
    is_hopeless: bool = False
    """It is a dead letter at once."""


class Result(NamedTuple):
    """What came of some atoms: each of them is in one of these, by its id."""

    done: Mapping[int, Sequence[bytes]] = {}
    """With the atoms that were made of each."""
    failed: Mapping[int, Failure] = {}
    later: Mapping[int, int] = {}
    """Not tried: after how many milliseconds to try again."""
    processor_us: int = 0
    collected: bool = False
    """Those that are done are results to be kept."""
    again: Mapping[int, Sequence[bytes]] = {}
    """Of those that are done, atoms that this step itself is to take."""
    looks: Mapping[int, Look] = {}
    """Looks at a store: what each has seen."""


class Step(Protocol):
    """Works on atoms. Blocks, raises nothing that is to be expected."""

    def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
        """Return what came of these, which are worked on in this order."""


class Evaluates(Protocol):
    """Runs programs: `JavaScript` does."""

    def evaluate(
        self, tenant: str, calls: Sequence[Call], within: float | None = None
    ) -> list[Grown]:
        """What came of each call."""

    def processor_seconds(self, tenant: str) -> ProcessorSeconds:
        """What this place has taken of the processor."""


class Scripts:
    """Procedures in JavaScript, each instance's in a process of its own.

    What runs programs in other languages is another Step (`working.py` chooses by procedure).
    """

    def __init__(self, evaluator: Evaluates) -> None:
        self._evaluator = evaluator

    def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
        """Make of each atom what the code makes of it."""
        code = task.workflow.procedures[task.queue.step].code
        before = self._used(task)
        try:
            grown = self._evaluator.evaluate(
                task.place, [call_of(code, each.body, each.entered_ms) for each in atoms]
            )
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
        used = max(0.0, self._used(task) - before)
        return Result(done, failed, processor_us=int(used * 1e6))

    def _used(self, task: Task) -> float:
        return self._evaluator.processor_seconds(task.place).total
