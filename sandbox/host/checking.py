"""Looks at whole documents before they are stored, so that nobody waits for another's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from typing import NamedTuple

from sandbox.encoding import encode_program
from sandbox.host.allowance import Allowance, HadToWait, TookTooLong
from sandbox.host.approval import Approval, Problems, examine
from sandbox.host.bursts import Bursts
from sandbox.host.by_tenant import ByTenant
from sandbox.host.fair_lock import FairLock
from sandbox.host.knowledge import PORTION_BYTES, PORTION_PROGRAMS
from sandbox.host.spare import Spare
from sandbox.host.starting import Starting
from sandbox.host.usage import ProcessorSeconds
from sandbox.host.worker_client import Failure, WorkerClient
from sandbox.host.zygote_client import ZygoteClient
from sandbox.program import Program

MAX_REMEMBERED = 50_000

_ALLOWED, _COMPILED = 1, 2
"""The looks: of the allow-list, and of the engine."""

TRIES = 3
"""Of a portion that the machine gives too little of the processor."""


class Checking:
    """Checking has three lanes with a checker each.

    Two are for short documents and for long ones. Whose documents have taken more than a burst of
    the processor's time lately goes on in the third, which has only the time that nobody else
    wants. In a lane one portion is looked at after the other, those of several tenants in turn.
    Besides, each document has a process of its own in which the engine looks at it: what
    calls itself would run there.

    A program that was found to be well is not looked at again when its tenant sends it again, and
    what one of the two looks has found of it is not lost where the time of its document ends.
    """

    def __init__(
        self, zygote: ZygoteClient, spare: Spare, idle_seconds: float, allow_list: bool
    ) -> None:
        self._allow_list = allow_list
        self._short = _Lane(zygote, spare, idle_seconds)
        self._long = _Lane(zygote, spare, idle_seconds)
        self._patient = _Lane(zygote, None, idle_seconds)
        self._bursts = Bursts()
        self._known = _Known()

    def problems(
        self,
        tenant: str,
        programs: Sequence[Program],
        allowance: Allowance,
        patience: float | None = None,
    ) -> list[list[str]]:
        """Return the problems of each program. Raises TookTooLong; waiting for others counts.

        That is HadToWait where others had most of the time, or `patience` for the third lane
        has ended first.
        """
        within = allowance.left()
        try:
            return [_texts(each) for each in self._problems(tenant, programs, allowance, patience)]
        except TookTooLong as error:
            is_over = within is not None and allowance.left() == 0.0
            if not is_over or allowance.used.total < (within or 0.0) / 2:
                raise HadToWait(error.seconds, error.within) from error
            raise

    def _problems(
        self,
        tenant: str,
        programs: Sequence[Program],
        allowance: Allowance,
        patience: float | None,
    ) -> list[Problems | Failure]:
        encoded = [encode_program(each) for each in programs]
        names = [sha256(each).hexdigest() for each in encoded]
        texts = dict(zip(names, encoded, strict=True))  # those that are alike once
        new = self._known.new(tenant, texts, _COMPILED)
        found: dict[str, Problems | Failure] = {each: [] for each in texts}
        quick = self._short if _is_short([texts[each] for each in new]) else self._long
        third = _Third(self._patient, patience)
        with closing(_Looking(tenant, quick, third, self._bursts, allowance)) as looking:
            looks = {_ALLOWED: looking.allowed} if self._allow_list else {}
            for stage, look in {**looks, _COMPILED: looking.compiled}.items():
                clean = [each for each in new if found[each] == []]
                unseen = self._known.new(tenant, clean, stage)
                answers = examine([texts[each] for each in unseen], look)
                for each, answer in zip(unseen, answers, strict=True):  # as they come
                    found[each] = answer
                    if answer == []:
                        self._known.note(tenant, each, stage)
        return [found[each] for each in names]

    def close(self) -> None:
        """End the checkers; others are started when needed."""
        for lane in self._lanes:
            lane.close()

    def abandon(self) -> None:
        """Forget the checkers without ending them: they are the process's we forked from."""
        for lane in self._lanes:
            lane.abandon()

    @property
    def _lanes(self) -> tuple[_Lane, ...]:
        return self._short, self._long, self._patient


class _Lane:
    """A checker, and where its processes for compiling come from: started for others already, or
    in the time that nobody else wants."""

    def __init__(self, zygote: ZygoteClient, spare: Spare | None, idle_seconds: float) -> None:
        self.lock = FairLock()
        self.approval = Approval(zygote, idle_seconds, is_patient=spare is None)
        self._starting = Starting(lambda: WorkerClient(zygote, is_patient=True))
        self._spare = spare

    def worker(self, allowance: Allowance) -> WorkerClient:
        """Return a process that has run nothing. Raises InfraError, TookTooLong."""
        if self._spare is None:
            return self._starting.ready(allowance)
        return self._spare.take(allowance)

    def close(self) -> None:
        """End the checker when nobody is using it."""
        with self.lock.held(None, Allowance()):
            self.approval.close()
            self._starting.close()

    def abandon(self) -> None:
        """Forget the processes without ending them."""
        self.approval.abandon()
        self._starting.abandon()


class _Third(NamedTuple):
    """The lane of those whose burst is used up, and for how long a caller waits in it."""

    lane: _Lane
    patience: float | None


class _Looking:
    """One document, portion by portion: each in the lane in which its tenant is then."""

    def __init__(
        self, tenant: str, quick: _Lane, third: _Third, bursts: Bursts, allowance: Allowance
    ) -> None:
        self._tenant = tenant
        self._quick, self._third = quick, third
        self._bursts = bursts
        self._used = allowance
        """Where it is noted what is used."""
        self._allowance = allowance
        """Of this, or less from when it is in the third lane."""
        self._is_waiting = False
        self._worker: WorkerClient | None = None
        self._worker_of: _Lane | None = None

    def allowed(self, texts: Sequence[bytes]) -> list[Problems] | Failure:
        """Return what the allow-list has against each program."""
        return self._patiently(lambda lane: self._allowed(lane, texts))

    def compiled(self, texts: Sequence[bytes]) -> list[Problems] | Failure:
        """Return what the engine has against each program."""
        return self._patiently(lambda lane: self._compiled(lane, texts))

    def close(self) -> None:
        """End the process in which the engine has looked."""
        if self._worker:
            self._worker.kill()

    def _patiently(
        self, ask: Callable[[_Lane], list[Problems] | Failure]
    ) -> list[Problems] | Failure:
        """Ask in a turn, and again where that had too little of the processor."""
        for _ in range(TRIES):
            with self._turn() as lane:
                found = ask(lane)
            if not isinstance(found, Failure) or not found.starved:
                break
        return found

    def _allowed(self, lane: _Lane, texts: Sequence[bytes]) -> list[Problems] | Failure:
        try:
            return lane.approval.ask(texts, self._allowance)
        finally:
            self._charge(ProcessorSeconds(preparing=lane.approval.take_cpu()))

    def _compiled(self, lane: _Lane, texts: Sequence[bytes]) -> list[Problems] | Failure:
        worker = self._worker_in(lane)
        try:
            return worker.check(texts, self._allowance)
        finally:
            self._charge(worker.take_used())

    @contextmanager
    def _turn(self) -> Iterator[_Lane]:
        """Have a turn in the lane in which the tenant is when it comes."""
        while True:
            lane = self._lane()
            with lane.lock.held(self._tenant, self._allowance):
                if lane is self._lane():
                    yield lane
                    return

    def _lane(self) -> _Lane:
        if self._bursts.has(self._tenant):
            return self._quick
        if not self._is_waiting:
            self._is_waiting = True
            self._allowance = self._allowance.at_most(self._third.patience)
        return self._third.lane

    def _worker_in(self, lane: _Lane) -> WorkerClient:
        """Return one that has looked at nothing but this document."""
        if self._worker is None or self._worker.ended or self._worker_of is not lane:
            self.close()
            self._worker, self._worker_of = lane.worker(self._allowance), lane
        return self._worker

    def _charge(self, used: ProcessorSeconds) -> None:
        self._used.used = self._used.used.plus(used)
        self._bursts.charge(self._tenant, used.total)


class _Known:
    """Of programs, by tenant and name, up to which look nothing was found. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clean: ByTenant[int] = ByTenant(MAX_REMEMBERED)

    def new(self, tenant: str, names: Iterable[str], stage: int) -> list[str]:
        """Return those of these of which it is not known that this look finds nothing."""
        with self._lock:
            known = self._clean.of(tenant)
            return [each for each in names if known.get(each, 0) < stage]

    def note(self, tenant: str, name: str, stage: int) -> None:
        """Note that this look, and those before it, have found nothing."""
        with self._lock:
            self._clean.put(tenant, name, stage)


def _is_short(texts: Sequence[bytes]) -> bool:
    return len(texts) <= PORTION_PROGRAMS and sum(map(len, texts)) <= PORTION_BYTES


def _texts(problems: Problems | Failure) -> list[str]:
    if isinstance(problems, Failure):
        return [f"the program cannot be checked: {problems.kind}"]
    return [text for _, text in problems]
