"""Pieces under way: each goes on when what it has asked is answered, and nobody waits for another.

A piece is a generator (`pipeline/process.py`), which yields what its evaluators are to be asked
and is sent what they answer. All of it that knows the partition is done here, in the partition's
thread; what is asked is answered in others (`slots.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline.batching.slots import QUICK_SECONDS, Slots
from pipeline.errors import Overflow
from pipeline.process import Steps
from pipeline.sharing.spending import Spending
from pipeline.state.batch import BatchState
from pipeline.work import Work

MET_SECONDS = 0.05
"""So long is waited for who has always been quick: it is the machine that is busy."""


@dataclass(slots=True, eq=False)
class Flight:
    """A piece under way: updates of one tenant, and what has come of them."""

    tenant: int
    work: Work
    steps: Steps
    spending: Spending
    is_met: bool
    """Whether an update of its tenant has been computed before."""
    is_slow: bool
    """Whether it begins among the slow ones."""
    state: BatchState | None = None
    """What has come of it, once it is done."""
    error: Exception | None = None
    """Or why nothing has."""
    is_adopted: bool = False
    """Whether it goes on without the stretch that it was a part of."""

    @property
    def patience(self) -> float:
        """Seconds for which others wait for it while nothing else gets on."""
        if self.is_slow:
            return 0.0
        return MET_SECONDS if self.is_met else QUICK_SECONDS

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to ask."""
        return self.state is not None or self.error is not None


class Flow:
    """The pieces of one partition that are under way."""

    def __init__(
        self,
        slots: Slots[Flight],
        passes: tuple[type[Exception], ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`passes` are the errors that no record is to blame for."""
        self._slots = slots
        self._passes = passes
        self._clock = clock
        self._asking: set[Flight] = set()
        self._paused: list[Flight] = []
        self.waited = 0.0
        """Seconds in which there was nothing to do but wait."""

    @property
    def is_computing(self) -> bool:
        """Whether anything is under way."""
        return bool(self._asking)

    @property
    def is_working(self) -> bool:
        """Whether some have only given way to others."""
        return bool(self._paused)

    def begin(self, flight: Flight) -> Flight:
        """Let a piece go on until it has something to ask."""
        self._asking.add(flight)
        self._go_on(flight, partial(next, flight.steps))
        return flight

    def look(self) -> None:
        """Let those go on whose questions are answered, or that have given way to others."""
        paused, self._paused = self._paused, []
        for flight in paused:
            self._go_on(flight, partial(next, flight.steps))
        for flight, future in self._slots.ended():
            error = future.exception()
            step = partial(flight.steps.send, future.result()) if error is None else None
            self._go_on(flight, step or partial(flight.steps.throw, error))

    def wait(self, seconds: float) -> None:
        """Until something is answered, at most for so long; then let go on what may."""
        if not self._paused:
            began = self._clock()
            self._slots.wait(seconds)
            self.waited += self._clock() - began
        self.look()

    def settle(self, flights: Iterable[Flight], leaves: Callable[[], bool]) -> list[Flight]:
        """Wait until these are done, or for as long as some of them get on, if it `leaves` others.

        Return those that are left. Where none has been done for longer than somebody else should
        wait, those that are under way are slow, or have no place for such as are.
        """
        self.look()
        open_ = [each for each in flights if not each.is_done]
        since = self._clock()
        while open_:
            left = since + max([each.patience for each in open_]) - self._clock()
            if left <= 0 and leaves():
                return open_
            self.wait(left if left > 0 else float("inf"))
            still = [each for each in open_ if not each.is_done]
            if len(still) < len(open_):
                open_, since = still, self._clock()
        return []

    def goes_on(self, flight: Flight) -> bool:
        """Whether its question is with its evaluator, or it has only given way to others."""
        return self._slots.has_place(flight) or flight in self._paused

    def drop(self, flights: Iterable[Flight]) -> None:
        """Nothing is to come of these any more."""
        for each in flights:
            self._slots.drop(each)
            self._asking.discard(each)
            if each in self._paused:
                self._paused.remove(each)

    def _go_on(self, flight: Flight, step: Callable[[], Any]) -> None:
        try:
            job = step()
        except StopIteration as end:
            flight.state = end.value
        except Exception as error:  # noqa: BLE001  whose piece it is decides what that means
            if isinstance(error, (Overflow, *self._passes)):
                error.__traceback__ = None  # it would hold the partition
            flight.error = error
        else:
            if job is None:
                self._paused.append(flight)
            else:
                self._slots.give(flight, job, is_slow=flight.is_slow)
            return
        self._asking.discard(flight)
