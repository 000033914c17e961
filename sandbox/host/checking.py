"""Looks at whole documents before they are stored, so that nobody waits for a long one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from sandbox.host.allowance import Allowance
from sandbox.host.approval import Approval, Problems, examine
from sandbox.host.fair_lock import FairLock
from sandbox.host.knowledge import PORTION_BYTES, PORTION_PROGRAMS
from sandbox.host.spare import Spare
from sandbox.host.worker_client import Failure, WorkerClient
from sandbox.host.zygote_client import ZygoteClient
from sandbox.program import Program


class Checking:
    """Checking has two lanes with a checker each: for short documents, and for long ones.

    In a lane one portion is looked at after the other, those of several documents in turn.
    Besides, each document has a process of its own in which the engine looks at it: what
    calls itself would run there.
    """

    def __init__(
        self, zygote: ZygoteClient, spare: Spare, idle_seconds: float, allow_list: bool
    ) -> None:
        self._spare = spare
        self._allow_list = allow_list
        self._short = _Lane(zygote, idle_seconds)
        self._long = _Lane(zygote, idle_seconds)

    def problems(self, programs: Sequence[Program], allowance: Allowance) -> list[list[str]]:
        """Return the problems of each program. Raises TookTooLong; waiting for others counts."""
        lane = self._short if _is_short(programs) else self._long
        found: list[Problems | Failure] = [[] for _ in programs]
        if self._allow_list:
            found = lane.allowed(programs, allowance)
        clean = [at for at, problems in enumerate(found) if problems == []]
        with closing(_Compiling(self._spare)) as compiling:
            compiled = lane.compiled([programs[at] for at in clean], compiling, allowance)
        for at, problems in zip(clean, compiled, strict=True):
            found[at] = problems
        return [_texts(problems) for problems in found]

    def close(self) -> None:
        """End the checkers; others are started when needed."""
        for lane in (self._short, self._long):
            lane.close()

    def abandon(self) -> None:
        """Forget the checkers without ending them: they are the process's we forked from."""
        for lane in (self._short, self._long):
            lane.approval.abandon()


class _Lane:
    def __init__(self, zygote: ZygoteClient, idle_seconds: float) -> None:
        self._lock = FairLock()
        self.approval = Approval(zygote, idle_seconds)

    def allowed(
        self, programs: Sequence[Program], allowance: Allowance
    ) -> list[Problems | Failure]:
        """Return what the allow-list has against each program."""
        return self._examined(programs, self.approval.ask, allowance)

    def compiled(
        self, programs: Sequence[Program], compiling: _Compiling, allowance: Allowance
    ) -> list[Problems | Failure]:
        """Return what the engine has against each program."""
        return self._examined(programs, compiling.ask, allowance)

    def close(self) -> None:
        """End the checker when nobody is using it."""
        with self._lock.held(Allowance()):
            self.approval.close()

    def _examined(
        self,
        programs: Sequence[Program],
        ask: Callable[[Sequence[bytes], Allowance], list[Problems] | Failure],
        allowance: Allowance,
    ) -> list[Problems | Failure]:
        def in_turn(texts: Sequence[bytes]) -> list[Problems] | Failure:
            with self._lock.held(allowance):
                return ask(texts, allowance)

        return list(examine(programs, in_turn))


class _Compiling:
    """Compiling is done in a worker of its own; and in another where that has ended."""

    def __init__(self, spare: Spare) -> None:
        self._spare = spare
        self._worker: WorkerClient | None = None

    def ask(self, texts: Sequence[bytes], allowance: Allowance) -> list[Problems] | Failure:
        """Return what the engine has against each program."""
        worker = self._worker = self._worker or self._spare.take()
        found = worker.check(texts, allowance)
        if worker.ended:
            self._worker = None
        return found

    def close(self) -> None:
        """End the worker."""
        if self._worker:
            self._worker.kill()


def _is_short(programs: Sequence[Program]) -> bool:
    size = 0
    for program in programs:
        codes = [each.code for each in program.channels]
        size += sum(map(len, codes)) + sum(map(len, program.arguments)) + 100 * len(codes)
    return len(programs) <= PORTION_PROGRAMS and size <= PORTION_BYTES


def _texts(problems: Problems | Failure) -> list[str]:
    if isinstance(problems, Failure):
        return [f"the program cannot be checked: {problems.kind}"]
    return [text for _, text in problems]
