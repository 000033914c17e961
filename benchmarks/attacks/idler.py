"""How late the machine itself is: a process that only wakes, again and again.

What makes it late makes every program late: other work, a host that gives the processor to
somebody else. An update that was slow meanwhile was not made so by a rule of ours.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

PERIOD_SECONDS = 0.005
LATE_SECONDS = 0.01
TOLD_SECONDS = 1.0


@dataclass(slots=True)
class Lateness:
    """When the machine was late, by the clock of all processes: (when it was due, how long)."""

    times: list[tuple[float, float]] = field(default_factory=list)

    def longest(self, begin: float, end: float) -> float:
        """Return the seconds that it was late at most for what was due then; 0 for hardly."""
        return max((late for due, late in self.times if begin <= due < end), default=0.0)


class Idler:
    """The process; `lateness` is known up to the last `heard`."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_wake, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._lateness = Lateness()

    def heard(self) -> Lateness:
        """Return what it has told so far; the last second may be missing."""
        with contextlib.suppress(EOFError, OSError):
            while self._ours.poll():
                self._lateness.times += self._ours.recv()
        return self._lateness

    def end(self) -> None:
        """End it now."""
        self._process.kill()
        self._process.join()
        self._ours.close()


@contextlib.contextmanager
def idles() -> Iterator[Idler]:
    """The process, which has ended when the block has."""
    idler = Idler()
    try:
        yield idler
    finally:
        idler.end()


def _wake(pipe: Connection) -> None:
    """Tell once a second of each time that it woke too late."""
    found: list[tuple[float, float]] = []
    tells = due = time.perf_counter()
    while True:
        due += PERIOD_SECONDS
        time.sleep(max(0.0, due - time.perf_counter()))
        now = time.perf_counter()
        if now - due > LATE_SECONDS:
            found.append((due, now - due))
            due = now
        if now >= tells:
            tells = now + TOLD_SECONDS
            pipe.send(found)
            found = []
