"""What a step does with atoms that were taken, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from servioticy.domain.workflows.model import Workflow
from servioticy.ports.atoms import Atom, Look, Queue

LATER_MS = 1_000
"""Where nobody is to blame."""
BEGUN_MS = -86_400_000
"""Added to when the rest of a file may be taken: it goes before files that nobody has begun. So
few are begun at a time, and few are copied and open."""


class Task(NamedTuple):
    """For whom an instance works, and where."""

    queue: Queue
    workflow: Workflow
    place: str
    """Names the tenant's sandbox process that the instance has for itself; "": it needs none."""
    instance: int = 0
    """The number by which the atoms are taken."""


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
    mebibyte_ms: int = 0
    """The memory that code or program may have, for as long as it was worked on."""
    collected: bool = False
    """Those that are done are results to be kept."""
    again: Mapping[int, Sequence[bytes]] = {}
    """Of those that are done, atoms that this step itself is to take."""
    looks: Mapping[int, Look] = {}
    """Looks at a store: what each has seen."""
    settled: int = 0
    """How many more are done: the step itself has stored that."""


class Step(Protocol):
    """Works on atoms. Blocks, raises nothing that is to be expected."""

    def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
        """Return what came of these, which are worked on in this order."""


def held_ms(began: float) -> int:
    """Return how many milliseconds it is since then, by the monotonic clock, of all that began."""
    return int((time.monotonic() - began) * 1000) + 1
