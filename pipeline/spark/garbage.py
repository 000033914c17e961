"""When a worker looks for garbage: between batches, as what they were made of is gone by then.

Python looks for objects that only hold each other whenever some more of them live than before;
that would be in the middle of a batch, which is thousands of small tuples that die together and
hold no cycles: a quarter of the engine's time, or, seldom but through all of the objects of
10,000 computations at once, pauses of 30 to 80 ms in every thread.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from servioticy.garbage import memory_given_back

YOUNG = 20_000
"""Objects that have come to stay: looking through them takes 5 to 10 ms."""

FAR_TOO_MANY = 2_000_000
"""Then it is looked for in the middle of late work, too."""

OLD = 50
"""So often the young ones are looked through before all are: after a million more. There are no
ages between them: what is there between two batches has come to stay, and to look through a
hundred thousand once more takes 20 to 40 ms."""

PART = 0.01
"""Of the time may be spent looking through everything."""


class Garbage:
    """Decides when to look, and how far."""

    def __init__(
        self,
        count: Callable[[], tuple[int, int, int]] = gc.get_count,
        collect: Callable[[int], object] = gc.collect,
        clock: Callable[[], float] = time.monotonic,
        trim: Callable[[], object] = memory_given_back,
    ) -> None:
        self._trim = trim
        self._died = 0
        self._count = count
        self._collect = collect
        self._clock = clock
        self._not_before = 0.0

    def begin(self) -> None:
        """From now on it is only looked for where `look` is called.

        What is there now stays: Spark's worker daemon has looked through it, and would again.
        """
        gc.collect()
        gc.freeze()
        gc.disable()

    def give_back(self, died: int) -> None:
        """Let the system have the memory of what has been forgotten: so many Service Objects.

        For who has nothing to do: what they hold of each other is found by looking through all.
        """
        self._died += died
        if self._died and self._clock() >= self._not_before:
            began = self._clock()
            self._collect(2)
            self._trim()
            self._not_before = self._clock() + (self._clock() - began) / PART
            self._died = 0

    def look(self, *, computing: bool) -> None:
        """Between two batches; `computing`: something is in the middle of one, beside."""
        young, _middle, old = self._count()
        if young < (FAR_TOO_MANY if computing else YOUNG):
            return
        if old < OLD or self._clock() < self._not_before:
            self._collect(1)
        else:
            began = self._clock()
            self._collect(2)
            took = self._clock() - began
            self._not_before = self._clock() + took / PART
