"""Which programs may run: asked of the checker once a program, and remembered."""

from __future__ import annotations

import time
from collections import OrderedDict

from sandbox.client import Client, Failure
from sandbox.nursery import Nursery
from sandbox.program import Fault, Program

MOST_REMEMBERED = 4096


class Approval:
    """Speaks with one checker process, started when first needed."""

    def __init__(self, nursery: Nursery, idle_seconds: float) -> None:
        self._nursery = nursery
        self._idle_seconds = idle_seconds
        self._checker: Client | None = None
        self._known: OrderedDict[str, Fault | None] = OrderedDict()
        self.seconds = 0.0  # processor time of the last question

    def fault(self, program: Program) -> Fault | None:
        """What every computation of this program gets, if it may not run."""
        if program.id in self._known:
            self.seconds = 0.0
            self._known.move_to_end(program.id)
            return self._known[program.id]
        problems = self.problems(program)
        if isinstance(problems, Failure):
            return Fault("policy", f"the program cannot be checked: {problems.kind}")
        self._known[program.id] = Fault(*problems[0]) if problems else None
        if len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        return self._known[program.id]

    def problems(self, program: Program) -> list[tuple[str, str]] | Failure:
        """Kind and text of each problem; a Failure is perhaps not the program's."""
        for _ in range(2):  # a checker that died in between says nothing about the program
            checker = self._ready()
            found = checker.check(program)
            self.seconds = checker.take_cpu()
            if not isinstance(found, Failure):
                return found
            self._checker = None
        return found

    def close(self) -> None:
        """End the checker; another is started when needed."""
        if self._checker:
            self._checker.kill()
        self._checker = None

    def abandon(self) -> None:
        """Forget the checker without ending it: it belongs to the process we forked from."""
        if self._checker:
            self._checker.abandon()
        self._checker = None

    def _ready(self) -> Client:
        checker = self._checker
        if checker:
            idle = time.monotonic() - checker.last_used > self._idle_seconds
            if not idle and checker.alive():
                return checker
            self.close()
        self._checker = Client(self._nursery, checks=True)
        return self._checker
