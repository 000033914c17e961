"""Which programs may run: asked of the checker once a program, and remembered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from cachetools import LRUCache

from sandbox.encoding import encode_program
from sandbox.host.allowance import UNLIMITED, Allowance
from sandbox.host.by_tenant import ByTenant
from sandbox.host.knowledge import portions
from sandbox.host.starting import Starting
from sandbox.host.worker_client import Failure, WorkerClient
from sandbox.host.zygote_client import ZygoteClient
from sandbox.program import ChannelCode, Fault, Program

MAX_REMEMBERED = 50_000
MAX_FAILED = 10_000
RETRY_SECONDS = 60.0

OURS = Program(
    "ours",
    "function",
    ("a",),
    (ChannelCode("c", "function(a) { const n = a.n; return { n: n + 1 }; }", "number"),),
)
"""Has the parts that most programs have."""

Problems = list[tuple[str, str]]
"""Kind and text of each; none if all is well."""


def examine(
    texts: Sequence[bytes], ask: Callable[[Sequence[bytes]], list[Problems] | Failure]
) -> Iterator[Problems | Failure]:
    """Yield what `ask` finds for each text of a program: many at a time, or one by one."""
    for some in portions(texts, len):
        answer = ask(some)
        if not isinstance(answer, Failure):
            yield from answer
            continue
        for text in some:
            alone = ask([text])
            if isinstance(alone, Failure):  # once may be an accident
                alone = ask([text])
            yield alone if isinstance(alone, Failure) else alone[0]


class Approval:
    """Approval speaks with one checker process, which is started when first needed."""

    def __init__(
        self,
        zygote: ZygoteClient,
        idle_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        turn: Callable[[], AbstractContextManager[None]] = nullcontext,
        is_patient: bool = False,
    ) -> None:
        """The checker is asked within a `turn`, one thread at a time.

        A patient one has only the time that nobody else wants.
        """
        self._turn = turn
        self._used = threading.local()
        self._idle_seconds = idle_seconds
        self._checker: WorkerClient | None = None
        self._starting = Starting(lambda: WorkerClient(zygote, checks=True, is_patient=is_patient))
        self._is_asked = False
        """Whether it has been: until then it waits for as long as its zygote lives."""
        self._clock = clock
        self._known: ByTenant[Fault | None] = ByTenant(MAX_REMEMBERED)
        self._failed: LRUCache[str, float] = LRUCache(MAX_FAILED)

    def fault(self, tenant: str, program: Program) -> Fault | None:
        """Return why a program may not run, None if it may; learn() it first."""
        known = self._known.of(tenant)
        if program.id not in known:
            return Fault("policy", "the program cannot be checked now")
        return known[program.id]

    def knows(self, tenant: str, program: Program) -> bool:
        """Tell whether the program has been looked at before, for this tenant."""
        return program.id in self._known.of(tenant)

    def learn(
        self, tenant: str, programs: Iterable[Program], allowance: Allowance = UNLIMITED
    ) -> None:
        """Ask for the programs that are not known yet, all at once. Raises TookTooLong.

        What cannot be checked is not asked again for a while: each time costs the wait.
        """
        known = self._known.of(tenant)
        new = {each.id: each for each in programs if each.id not in known}
        new = {name: each for name, each in new.items() if self._is_due(name)}
        if not new:
            return
        texts = [encode_program(each) for each in new.values()]
        found = examine(texts, lambda some: self.ask(some, allowance))
        for name, problems in zip(new, found, strict=True):  # as they come, should it be cut
            if not isinstance(problems, Failure):
                self._known.put(tenant, name, Fault(*problems[0]) if problems else None)
                allowance.note_preparation()
            elif not problems.starved:
                self._failed[name] = self._clock() + RETRY_SECONDS

    def _is_due(self, name: str) -> bool:
        return self._failed.get(name, 0.0) <= self._clock()

    def take_cpu(self) -> float:
        """Return the processor seconds used for this thread since it last asked for them."""
        taken = getattr(self._used, "seconds", 0.0)
        self._used.seconds = 0.0
        return float(taken)

    def ask(self, texts: Sequence[bytes], allowance: Allowance) -> list[Problems] | Failure:
        """Return what the allow-list has against each program (JSON). Raises TookTooLong."""
        began = time.monotonic()
        with self._turn():
            allowance.leave_out(time.monotonic() - began)
            checker = self._ready(allowance)
            self._is_asked = True
            try:
                return checker.check(texts, allowance)
            finally:
                # It is everybody's: nobody is charged for its start.
                used = checker.take_used().programs
                self._used.seconds = getattr(self._used, "seconds", 0.0) + used
                if checker.ended:
                    self._checker = None

    def prepare(self) -> None:
        """Start the checker, unless it waits, and have it look at something of ours.

        What it looks with is compiled by V8 when it is first used: some 15 ms, for which the first
        program of somebody need not wait. Raises InfraError.
        """
        with self._turn():
            before, checker = self._checker, self._ready()
            if checker is not before:
                checker.check([encode_program(OURS)])
                checker.take_used()  # nobody's
                if checker.ended:
                    self._checker = None

    def close(self) -> None:
        """End the checker; another is started when needed."""
        self._starting.close()
        self._end()

    def _end(self) -> None:
        if self._checker:
            self._checker.kill()
        self._checker = None

    def abandon(self) -> None:
        """Forget the checker without ending it: it belongs to the process we forked from."""
        self._starting.abandon()
        if self._checker:
            self._checker.abandon()
        self._checker = None

    def _ready(self, allowance: Allowance = UNLIMITED) -> WorkerClient:
        checker = self._checker
        if checker:
            silent = time.monotonic() - checker.last_used
            idle = self._is_asked and silent > self._idle_seconds
            if not idle and checker.alive():
                return checker
            self._end()
        self._checker = self._starting.ready(allowance)
        self._is_asked = False
        return self._checker
