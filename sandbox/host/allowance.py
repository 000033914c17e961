"""How long a piece of work may take in all, whatever the number of its frames."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from sandbox.host.usage import ProcessorSeconds


class TookTooLong(Exception):
    """The work took more time than its caller allows; no program is blamed for it."""

    def __init__(self, seconds: float, within: float, prepared: bool = False) -> None:
        super().__init__(f"{seconds:.2f} s of at most {within:.2f} s")
        self._seconds, self._within, self._prepared = seconds, within, prepared

    @property
    def seconds(self) -> float:
        """The wall seconds that were used."""
        return self._seconds

    @property
    def within(self) -> float:
        """The wall seconds that were allowed."""
        return self._within

    @property
    def prepared(self) -> bool:
        """Whether some of the time went into work that a repetition need not do again."""
        return self._prepared


class HadToWait(TookTooLong):
    """Most of that time others had what the work needs: tried again later it may be done."""


class Allowance:
    """An allowance counts the wall time of one run from its beginning; None allows any time.

    It notes the processor's time, too, which is not bounded by it.
    """

    def __init__(
        self, within: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._within = math.inf if within is None else within
        self._clock = clock
        self._began = clock()
        self._prepared = False
        self.used = ProcessorSeconds()
        """It was used meanwhile."""

    def note_preparation(self) -> None:
        """Note that something was done that lasts: a program is known from now on."""
        self._prepared = True

    def leave_out(self, seconds: float) -> None:
        """Do not count seconds in which others were waited for."""
        self._began += seconds

    def check(self) -> None:
        """Raise TookTooLong if more is used than is allowed; called between two frames."""
        if self._used() > self._within:
            raise self.spent()

    def spent(self, *, in_vain: bool = False) -> TookTooLong:
        """Return what to raise where the allowance has cut a frame short.

        `in_vain`: what was prepared has gone with the process.
        """
        return TookTooLong(self._used(), self._within, self._prepared and not in_vain)

    def granted(self, budget_ms: int, minimum_ms: int) -> int:
        """Return the budget, or what is left if that is less, but never less than the minimum."""
        left = (self._within - self._used()) * 1000
        return budget_ms if left >= budget_ms else min(budget_ms, max(minimum_ms, int(left)))

    def at_most(self, seconds: float | None) -> Allowance:
        """Return one that ends with this one, or after so many seconds if that is earlier."""
        left = self.left()
        known = [each for each in (left, seconds) if each is not None]
        return Allowance(min(known, default=None), self._clock)

    def left(self) -> float | None:
        """Return the seconds that are left; None if any time is allowed."""
        left = self._within - self._used()
        return max(0.0, left) if math.isfinite(left) else None

    def _used(self) -> float:
        return self._clock() - self._began


UNLIMITED = Allowance()
