"""Procedures that tenants' own programs run, in any language: beside us, as operators are.

A program is asked as by composites (`servioticy/ports/programs.py`), by the node manager of this
machine, with its walls, limits and turns. It keeps nothing: no state goes to it, and none that it
sends is kept. Of what it makes of several atoms it is known which is whose; where it fails on
several it is asked of each alone, so one atom spoils no others.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence

from functions.steps import LATER_MS, Failure, Result, Task, held_ms
from servioticy.domain.program_code import ProgramCode
from servioticy.domain.workflows.model import MAX_MADE, Procedure
from servioticy.domain.workflows.programs import fault_of
from servioticy.ports.atoms import Atom
from servioticy.ports.programs import KnownPrograms, Manifest, Program, Programs, Question, Reply

KNOWN_SECONDS = 10.0
"""So old may be what is known of a program."""
MAX_KNOWN = 1_000
REPLIES_SECONDS = 1.0
MEBIBYTE = 1024 * 1024
NO_PROGRAM = "there is no such version of this program any more"


class Asking:
    """Asks programs, and waits for what they answer; any thread may."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._replied = threading.Condition()
        self._replies: dict[bytes, Reply | None] = {}
        """Of what is waited for; None: it has not come."""
        self._numbers = itertools.count()
        self._listener: threading.Thread | None = None
        self._is_closed = False

    def ask(
        self, program: Program, composite: str, events: Sequence[bytes], until: float
    ) -> Reply | None:
        """Return what came of these; None: there is no room now. Raises TimeoutError."""
        question = Question(b"%d" % next(self._numbers), program, composite, None, events)
        with self._replied:
            self._listen()
            self._replies[question.id] = None
        reply: Reply | None = None
        try:
            if not self._programs.ask(question):
                return None
            with self._replied:
                while (reply := self._replies[question.id]) is None:
                    left = until - time.monotonic()
                    if left <= 0 or self._is_closed:
                        raise TimeoutError
                    self._replied.wait(left)
            return reply
        finally:
            with self._replied:
                del self._replies[question.id]

    def close(self) -> None:
        """Nobody is answered any more."""
        with self._replied:
            self._is_closed = True
            self._replied.notify_all()
        if self._listener is not None:
            self._listener.join()
        self._programs.close()

    def _listen(self) -> None:
        if self._listener is None:
            self._listener = threading.Thread(target=self._take, name="programs", daemon=True)
            self._listener.start()

    def _take(self) -> None:
        while not self._is_closed:
            found = self._programs.replies(REPLIES_SECONDS)
            with self._replied:
                for each in found:
                    if each.id in self._replies:  # else nobody waits for it any more
                        self._replies[each.id] = each
                self._replied.notify_all()


class Known:
    """What programs say of themselves, as it was lately; any thread may ask."""

    def __init__(self, known: KnownPrograms, clock: Callable[[], float] = time.monotonic) -> None:
        self._known = known
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[Program, tuple[float, Manifest | None]] = {}

    def manifest(self, program: Program) -> Manifest | None:
        """Return it; None: its tenant has no such program. Raises Unavailable."""
        now = self._clock()
        with self._lock:
            at, found = self._found.get(program, (-KNOWN_SECONDS, None))
        if now - at < KNOWN_SECONDS:
            return found
        found = self._known.manifests([program]).get(program)
        with self._lock:
            if len(self._found) >= MAX_KNOWN:
                self._found.clear()
            self._found[program] = now, found
        return found


class Running:
    """The step that has programs run."""

    def __init__(self, asking: Asking, known: Known, seconds: float) -> None:
        """So long is waited for what is made of the atoms of a task."""
        self._asking = asking
        self._known = known
        self._seconds = seconds

    def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
        """Make of each atom what the program makes of it. Raises Unavailable."""
        procedure = task.workflow.procedures[task.queue.step]
        if procedure.program is None:
            raise ValueError(f"{procedure.name} has code")
        program = _program(task, procedure.program)
        manifest = self._known.manifest(program._replace(lane=0))
        if manifest is None:
            return Result(failed={each.id: Failure(NO_PROGRAM) for each in atoms})
        began = time.monotonic()
        run = _Run(self._asking, program, task, procedure, began + self._seconds)
        for first in range(0, len(atoms), manifest.batch):
            run.work(atoms[first : first + manifest.batch])
        held = held_ms(began) * manifest.memory_bytes // MEBIBYTE
        return run.result()._replace(mebibyte_ms=held)

    def close(self) -> None:
        """End all programs."""
        self._asking.close()


class _Run:
    """Of one task."""

    def __init__(
        self, asking: Asking, program: Program, task: Task, procedure: Procedure, until: float
    ) -> None:
        self._asking = asking
        self._program = program
        self._task = task
        self._name = procedure.name
        self._until = until
        self._done: dict[int, Sequence[bytes]] = {}
        self._failed: dict[int, Failure] = {}
        self._later: dict[int, int] = {}
        self._seconds = 0.0

    def work(self, atoms: Sequence[Atom]) -> None:
        """Ask of these together, and where the program fails on several of each alone."""
        if time.monotonic() >= self._until:
            self._later |= dict.fromkeys([each.id for each in atoms], 0)
            return
        try:
            reply = self._asking.ask(
                self._program,
                f"{self._task.queue.workflow}/{self._name}",
                [_event(self._task, self._name, each) for each in atoms],
                self._until,
            )
        except TimeoutError:
            # Others may have had the place, so it is no end; but it is an attempt, or one that
            # takes too long would be tried for ever.
            self._fail(atoms, "the program has not answered in time")
            return
        if reply is None:
            self._later |= dict.fromkeys([each.id for each in atoms], LATER_MS)
            return
        self._seconds += reply.processor_seconds
        if not reply.error:
            self._take(atoms, reply)
        elif len(atoms) > 1:
            for each in atoms:
                self.work([each])
        else:
            self._fail(atoms, f"error: {reply.error}")

    def result(self) -> Result:
        """Return what came of all."""
        spent = int(self._seconds * 1e6)
        return Result(self._done, self._failed, self._later, spent)

    def _take(self, atoms: Sequence[Atom], reply: Reply) -> None:
        made: list[list[bytes]] = [[] for _ in atoms]
        for each in reply.outputs:
            made[each.event].append(each.channels)
        for atom, own in zip(atoms, made, strict=True):
            fault = next(filter(None, map(fault_of, own)), "")
            if len(own) > MAX_MADE:
                fault = f"more than {MAX_MADE} atoms are made of one"
            if fault:
                self._fail([atom], f"error: {fault}")
            else:
                self._done[atom.id] = own

    def _fail(self, atoms: Sequence[Atom], reason: str) -> None:
        self._failed |= {each.id: Failure(reason) for each in atoms}


def _program(task: Task, code: ProgramCode) -> Program:
    """Return it as it is for an instance, which has a process for itself."""
    lane = int(task.place.rpartition(".")[2])
    return Program(task.queue.tenant, code.name, code.version, lane=lane)


def _event(task: Task, name: str, atom: Atom) -> bytes:
    """Return an atom as a program is asked of it: its members are channels."""
    return b'{"stream":"%b","timestamp":%d,"channels":%b,"version":%d,"correlation":"%b.%d"}' % (
        name.encode(),
        atom.entered_ms,
        atom.body,
        task.queue.version,
        task.queue.workflow.encode(),
        atom.id,
    )
