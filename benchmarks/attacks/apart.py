"""An attack in a process of its own, so that it takes no time of those who measure."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import NamedTuple

from benchmarks.attacks.attack import Attack
from benchmarks.attacks.attacker import Attacker, Place
from benchmarks.processes import processor_seconds
from sandbox.yielding import yield_to_others

SETUP_SECONDS = 60.0
GRACE_SECONDS = 2.0
LEAST = 19
"""of all priorities, as a nice value"""


class _Ended(NamedTuple):
    """What an attack got, and what it took of the processor, in seconds."""

    got: Counter[str]
    used: float


class Apart:
    """An attack, from `begin` on; `is_over` when it has ended, of itself or as its time is."""

    def __init__(self, attack: Attack, place: Place, seconds: float, *, yields: bool) -> None:
        """Start its process, which waits until it is to begin.

        Where it `yields` it works only while nobody else wants the processor.
        """
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(
            target=_work, args=(theirs, attack, place, seconds, yields), daemon=True
        )
        self._process.start()
        theirs.close()
        self._seconds = seconds
        self._until = float("inf")
        self.got: Counter[str] = Counter()
        self._used = 0.0
        self.is_ready = False
        """Whether the attack proper has begun."""

        self._ours.recv()  # its process has started: what that takes is nobody's attack

    def begin(self) -> None:
        """Make ready and attack."""
        self._until = time.monotonic() + SETUP_SECONDS + GRACE_SECONDS
        self._ours.send(None)

    def is_over(self) -> bool:
        """Tell whether it has ended; one that overstays its time is ended."""
        try:
            while self._ours.poll():
                self._heard(self._ours.recv())
        except (EOFError, OSError):
            return True
        if time.monotonic() > self._until:
            self.got["ended by force"] += 1
            self._until = float("inf")
            self._process.kill()
        return False

    def processor_seconds(self) -> float:
        """Return what it has taken of the processor so far; 0 when it has ended of itself."""
        return processor_seconds(self._process.pid or 0) or self._used

    def end(self) -> None:
        """End it now, whatever it does."""
        self._process.kill()
        self._process.join()
        self._ours.close()

    def _heard(self, message: _Ended | None) -> None:
        """What it got, in the end; None when it is ready and the attack proper begins."""
        if message is not None:
            self.got += message.got
            self._used = message.used
            return
        self.is_ready = True
        self._until = time.monotonic() + self._seconds + GRACE_SECONDS


@contextlib.contextmanager
def prepared(
    attack: Attack, place: Place, seconds: float, *, yields: bool = False
) -> Iterator[Apart]:
    """The attack, which waits for its `begin`, and has ended when the block has."""
    apart = Apart(attack, place, seconds, yields=yields)
    try:
        yield apart
    finally:
        apart.end()


def _work(pipe: Connection, attack: Attack, place: Place, seconds: float, yields: bool) -> None:
    if yields:
        _yield_the_processor()
    pipe.send(None)
    pipe.recv()
    attacker = Attacker(place, SETUP_SECONDS)
    began = time.process_time()
    try:
        ready = attack.setup(attacker)
        pipe.send(None)
        attacker.for_another(seconds)
        attack.run(attacker, ready)
    finally:
        pipe.send(_Ended(Counter(attacker.got), time.process_time() - began))


def _yield_the_processor() -> None:
    """Work only while nobody else wants to."""
    os.setsid()
    yield_to_others(LEAST)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
