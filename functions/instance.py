"""An instance: it takes atoms of one step, and finishes them before it takes others.

All instances of a step are equal, and keep nothing from one atom to the next. One ends when there
is nothing to take, when others' turn has come, or at the end of its lifetime; what it holds then
it gives back. One that is killed gives nothing back: what it held is shown again by itself.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from functions.limits import Limits
from functions.steps import BEGUN_MS, Failure, Result, Step, Task
from servioticy.domain.workflows.model import LOOK
from servioticy.errors import Unavailable
from servioticy.ports.atoms import Atom, Look, Product, Queue

MOST = 100
"""Atoms that are taken at once."""
MOST_FILES = 4
"""Of files, of each of which a portion is cut."""
LONG, SHORT = 0.1, 0.05
"""Seconds: after a batch that took longer fewer are taken, after a shorter one more."""
MAX_STORED_BYTES = 2 * 1024 * 1024
"""Of products in one transaction; an atom's are never parted."""
FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 1_000, 300_000
"""Between two attempts at an atom: each pause is twice as long as the one before."""
STORE_AGAIN_SECONDS = 0.5
KILLED = 5
"""So much more often than it is tried an atom is shown: each time that nobody told what came of it
somebody was killed, perhaps over it, and perhaps over another that was worked on beside it."""
NOBODY_TOLD = "whoever worked on it was killed, again and again"

T = TypeVar("T")

log = logging.getLogger("functions")


class Queues(Protocol):
    """What an instance asks of the store: `PostgresAtoms` keeps to it."""

    def take(
        self, queue: Queue, instance: int, most: int, now_ms: int, until_ms: int
    ) -> list[Atom]:
        """Return some atoms, which nobody else sees until that time."""

    def finish(
        self,
        queue: Queue,
        instance: int,
        ids: Sequence[int],
        products: Sequence[Product],
        now_ms: int,
    ) -> int:
        """These are done, and what was made of them waits: in one transaction."""

    def collect(self, queue: Queue, instance: int, ids: Sequence[int], now_ms: int) -> int:
        """Keep these as results."""

    def look(
        self, queue: Queue, instance: int, id_: int, look: Look, every_ms: int, now_ms: int
    ) -> int:
        """A look at a store is done: what is new waits, and so does the next look."""

    def give_back(
        self, queue: Queue, instance: int, at_ms: Mapping[int, int], *, counts: bool
    ) -> None:
        """Let these be taken again, each from a time on."""

    def bury(self, queue: Queue, instance: int, reasons: Mapping[int, str], now_ms: int) -> None:
        """Make these dead letters."""


class Done(NamedTuple):
    """What an instance has done with a batch."""

    atoms: int
    made: int
    failed: int
    dead: int
    processor_us: int
    mebibyte_ms: int = 0


class Instance:
    """Lives in a thread of its own."""

    def __init__(
        self,
        number: int,
        task: Task,
        step: Step,
        queues: Queues,
        limits: Limits,
        note: Callable[[Task, Done], None],
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.number = number
        self.task = task
        self.ends = False
        """Whether it is to end after what it has in hand."""
        self.size = 1
        """How many atoms it takes next."""
        self._step = step
        self._queues = queues
        self._limits = limits
        self._note = note
        self._clock = clock
        self._sleep = sleep
        self._end_ms = self._now() + limits.lifetime_ms

    @property
    def end_ms(self) -> int:
        """When its life ends."""
        return self._end_ms

    def run(self, atoms: Sequence[Atom] = ()) -> None:
        """Work until its end, first on what has been taken for it. Raises Unavailable."""
        while atoms or (not self.ends and self._now() < self._end_ms):
            atoms = atoms or self._take()
            if not atoms:
                return
            if self._now() >= self._end_ms:  # taking has taken long: it is a successor's turn
                self._give_back(dict.fromkeys([each.id for each in atoms], 0), counts=False)
                return
            began = time.monotonic()
            atoms = self._bury_deadly(atoms)
            is_later = bool(atoms) and self._work(atoms)
            self._learn(time.monotonic() - began)
            if is_later:
                return
            atoms = ()

    def _take(self) -> Sequence[Atom]:
        now = self._now()
        until = now + self._limits.visibility_ms
        return self._queues.take(self.task.queue, self.number, self.size, now, until)

    def _bury_deadly(self, atoms: Sequence[Atom]) -> list[Atom]:
        """Make those dead letters that seem to kill whoever works on them; return the others."""
        most = self._attempts() + KILLED
        deadly = {each.id: NOBODY_TOLD for each in atoms if each.attempts > most}
        if deadly:
            self._bury(deadly)
            self._note(self.task, Done(0, 0, len(deadly), len(deadly), 0))
        return [each for each in atoms if each.id not in deadly]

    def _work(self, atoms: Sequence[Atom]) -> bool:
        """Work on these, and store what came of it; whether some are to be tried later.

        Where a step fails by a fault of ours it is tried with each alone, and that is an attempt
        at those it fails on: else one atom would hold up the queue for ever. Raises Unavailable.
        """
        try:
            result = self._step.work(self.task, atoms)
        except Unavailable:
            raise
        except Exception as error:
            log.exception("step_failed")
            if len(atoms) > 1:
                return self._work_alone(atoms)
            failure = Failure(f"the platform failed on it: {type(error).__name__}")
            result = Result(failed={each.id: failure for each in atoms})
        self._store(atoms, result)
        return bool(result.later)

    def _work_alone(self, atoms: Sequence[Atom]) -> bool:
        is_later = False
        for place, each in enumerate(atoms):
            if self._now() >= self._end_ms:
                left = [each.id for each in atoms[place:]]
                self._give_back(dict.fromkeys(left, 0), counts=False)
                break
            is_later |= self._work([each])
        return is_later

    def _learn(self, seconds: float) -> None:
        if seconds > LONG:
            self.size = max(1, self.size // 2)
        elif seconds < SHORT:
            self.size = min(MOST if self.task.queue.step >= 0 else MOST_FILES, self.size * 2)

    def _store(self, atoms: Sequence[Atom], result: Result) -> None:
        queue, made = self.task.queue, 0
        if result.collected:
            self._patiently(
                lambda: self._queues.collect(queue, self.number, list(result.done), self._now())
            )
        else:
            for ids, products in _portions(self.task, result):
                made += len(products)
                self._patiently(
                    lambda ids=ids, products=products: self._queues.finish(  # type: ignore[misc]
                        queue, self.number, ids, products, self._now()
                    )
                )
        for id_, look in result.looks.items():
            made += self._look(id_, look)
        dead = self._fail(atoms, result.failed)
        if result.later:
            self._give_back(result.later, counts=False)
        self._note(
            self.task,
            Done(
                len(result.done) + len(result.looks) + result.settled,
                made,
                len(result.failed),
                dead,
                result.processor_us,
                result.mebibyte_ms,
            ),
        )

    def _look(self, id_: int, look: Look) -> int:
        """Store what was seen; how many files are to be cut."""
        queue, files = self.task.queue, self.task.workflow.files
        every = 0 if files is None else files.every_ms
        return self._patiently(
            lambda: self._queues.look(queue, self.number, id_, look, every, self._now())
        )

    def _fail(self, atoms: Sequence[Atom], failed: Mapping[int, Failure]) -> int:
        """Try those again later that have not been tried often enough; how many are dead."""
        again: dict[int, int] = {}
        dead: dict[int, str] = {}
        for atom in atoms:
            failure = failed.get(atom.id)
            if failure is None:
                continue
            if failure.is_hopeless or atom.attempts >= self._attempts():
                dead[atom.id] = failure.reason
            else:
                again[atom.id] = pause_ms(atom.attempts)
        if again:
            self._give_back(again, counts=True)
        if dead:
            self._bury(dead)
        return len(dead)

    def _bury(self, reasons: Mapping[int, str]) -> None:
        self._patiently(
            lambda: self._queues.bury(self.task.queue, self.number, reasons, self._now())
        )

    def _attempts(self) -> float:
        if self.task.queue.step == LOOK:
            return math.inf  # without it no look would follow
        return self.task.workflow.attempts_of(self.task.queue.step)

    def _give_back(self, pauses: Mapping[int, int], *, counts: bool) -> None:
        now = self._now()
        times = {id_: now + pause for id_, pause in pauses.items()}
        self._patiently(
            lambda: self._queues.give_back(self.task.queue, self.number, times, counts=counts)
        )

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Ask while the atoms are still its own: asked twice it takes effect once.

        Raises Unavailable.
        """
        while True:
            try:
                return ask()
            except Unavailable as error:
                if self._now() > self._end_ms or self.ends:
                    raise
                log.warning("atoms_not_stored", extra={"why": str(error)[:200]})
                self._sleep(STORE_AGAIN_SECONDS)

    def _now(self) -> int:
        return int(self._clock() * 1000)


def pause_ms(attempts: int) -> int:
    """Return how long an atom waits after so many attempts."""
    return int(min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** min(attempts - 1, 20)))


def _portions(task: Task, result: Result) -> Iterator[tuple[list[int], list[Product]]]:
    """Yield atoms with what was made of them, in order, so that no transaction is large."""
    step, workflow = task.queue.step, task.workflow
    targets = [(to, workflow.delay_of(to)) for to in workflow.links_of(step)]
    ids: list[int] = []
    products: list[Product] = []
    size = 0
    for id_, atoms in result.done.items():
        ids.append(id_)
        for body in atoms:
            products += [Product(id_, to, delay, body) for to, delay in targets]
            size += len(body) * len(targets)
        products += [Product(id_, step, BEGUN_MS, body) for body in result.again.get(id_, ())]
        if size > MAX_STORED_BYTES:
            yield ids, products
            ids, products, size = [], [], 0
    if ids:
        yield ids, products
