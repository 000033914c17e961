"""Who takes all that waits, under load waits a little for more: what comes together costs less.

A batch costs, and so does each of its members. When batches are small the first is most of it, and
nothing makes them larger: who is quick to take finds little. So a worker whose last batch had
several waits half as long as that batch took: nobody's answer comes later than half again as late
as it would have. One that comes alone, or after a pause, waits for nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PART = 0.5
LONGEST_SECONDS = 0.005
"""However long a batch has taken: what a lone update takes from request to socket."""


class Gathering:
    """Tells a worker how long to wait. For one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun: float | None = None
        self._several = False
        self._asked = 0.0
        self._seconds = 0.0

    def ends(self) -> None:
        """Note that the batch before is done."""
        took = self._clock() - self._begun if self._begun is not None else 0.0
        self._seconds = min(PART * took, LONGEST_SECONDS) if self._several else 0.0

    def asks(self) -> None:
        """Note that the worker waits for the next from now on."""
        self._asked = self._clock()

    def until(self) -> float:
        """Return until when to wait for more, as there is a first one now."""
        now = self._clock()
        return self._asked + self._seconds if now - self._asked < self._seconds else now

    def takes(self, number: int) -> None:
        """Note that a batch of so many is begun."""
        self._begun = self._clock()
        self._several = number > 1
