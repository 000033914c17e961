"""Times functions from outside: each named function is replaced by one that keeps time.

A function's *own* time is what it took less what the timed functions it called took, so
the parts add up to the whole.
"""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Spent:
    """Own seconds of one part, of the clock and of this thread's processor time."""

    calls: int = 0
    clock: float = 0.0
    processor: float = 0.0


@dataclass(slots=True)
class Stopwatch:
    """Where the time goes, part by part, in the order they were named."""

    parts: dict[str, Spent] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    _running: list[list[float]] = field(default_factory=list)

    @contextmanager
    def on(self, functions: Mapping[str, str]) -> Iterator[None]:
        """Time `module:name` or `module:Class.name` under its part until the end of this."""
        undo = []
        for place, part in functions.items():
            self.parts.setdefault(part, Spent())
            try:
                owner, name, was = _find(place)
            except (AttributeError, ImportError):
                self.missing.append(place)
                continue
            undo.append((owner, name, was))
            setattr(owner, name, self._timed(part, was))
        try:
            yield
        finally:
            for owner, name, was in undo:
                setattr(owner, name, was)

    def clear(self) -> None:
        """Forget what was measured so far."""
        for part in self.parts:
            self.parts[part] = Spent()

    def _timed(self, part: str, function: Any) -> Callable[..., Any]:
        static = isinstance(function, staticmethod)
        inner = function.__func__ if static else function

        @functools.wraps(inner)
        def timed(*arguments: Any, **named: Any) -> Any:
            below = [0.0, 0.0]
            self._running.append(below)
            clock, processor = time.perf_counter(), time.thread_time()
            try:
                return inner(*arguments, **named)
            finally:
                clock, processor = time.perf_counter() - clock, time.thread_time() - processor
                self._running.pop()
                spent = self.parts[part]
                spent.calls += 1
                spent.clock += clock - below[0]
                spent.processor += processor - below[1]
                if self._running:
                    self._running[-1][0] += clock
                    self._running[-1][1] += processor

        return staticmethod(timed) if static else timed


def _find(place: str) -> tuple[Any, str, Any]:
    module, _, path = place.partition(":")
    owner: Any = importlib.import_module(module)
    *above, name = path.split(".")
    for each in above:
        owner = getattr(owner, each)
    return owner, name, vars(owner)[name] if name in vars(owner) else getattr(owner, name)
