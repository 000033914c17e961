"""Times functions: each is put into one that keeps time and otherwise does the same.

A function's *own* time is what it took less what the timed functions that it called took, so
the parts add up to the whole.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


@dataclass(slots=True)
class Spent:
    """The own seconds of one part, of the clock and of this thread's processor time."""

    calls: int = 0
    clock: float = 0.0
    processor: float = 0.0


@dataclass(slots=True)
class Stopwatch:
    """Where the time goes, part by part, in the order in which they were first timed."""

    parts: dict[str, Spent] = field(default_factory=dict)
    _running: list[list[float]] = field(default_factory=list)

    def timed(
        self, part: str, function: Callable[Arguments, Answer]
    ) -> Callable[Arguments, Answer]:
        """Return the function, whose time counts for this part."""
        spent = self.parts.setdefault(part, Spent())

        @functools.wraps(function)
        def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
            below = [0.0, 0.0]
            self._running.append(below)
            clock, processor = time.perf_counter(), time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                clock, processor = time.perf_counter() - clock, time.thread_time() - processor
                self._running.pop()
                spent.calls += 1
                spent.clock += clock - below[0]
                spent.processor += processor - below[1]
                if self._running:
                    self._running[-1][0] += clock
                    self._running[-1][1] += processor

        return call

    def watch(self, thing: object, parts: Mapping[str, str]) -> None:
        """Time methods of one object from now on: the part of each, by its name."""
        for name, part in parts.items():
            setattr(thing, name, self.timed(part, getattr(thing, name)))

    def clear(self) -> None:
        """Forget what was measured so far."""
        for spent in self.parts.values():
            spent.calls, spent.clock, spent.processor = 0, 0.0, 0.0
