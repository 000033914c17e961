"""Stores and sends what was computed late, in a thread beside the partition's.

That waits for the disk, and until all is acknowledged: the partition's own thread does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial

from pipeline.batching.flow import Flight
from pipeline.engine import Engine
from pipeline.sharing.fairness import Fairness
from pipeline.state.late_base import LateBase
from pipeline.state.partition import Partition
from pipeline.work import Work
from servioticy.ports.output import Output


@dataclass(frozen=True, slots=True, eq=False)
class Storing:
    """Something on its way to where it is stored."""

    base: LateBase
    """Has what is to be noted when it is there."""
    future: Future[None]


class Beside:
    """Begins to store; one thing at a time."""

    def __init__(
        self,
        partition: Partition,
        engine: Engine,
        fairness: Fairness,
        new_output: Callable[[], Output],
        executor: Executor,
    ) -> None:
        """`new_output` makes the one that is used by the `executor`, which has one thread."""
        self._partition = partition
        self._emit = engine.stages.emit
        self._fairness = fairness
        self._new_output = new_output
        self._output: Output | None = None
        self._executor = executor

    def store(self, work: Work, flights: Sequence[Flight]) -> Storing:
        """Begin to store what has come of these pieces, of which the work is the records."""
        base = LateBase(self._partition, work, contested=self._fairness.shares.contested)
        return Storing(base, self._executor.submit(partial(self._store, work, flights, base)))

    def _store(self, work: Work, flights: Sequence[Flight], base: LateBase) -> None:
        """In the other thread."""
        began, processor = time.monotonic(), time.thread_time()
        output = self._output = self._output or self._new_output()
        states = [each.state for each in flights if each.state is not None]
        self._emit(states, (), work, base, output)
        seconds, processor = time.monotonic() - began, time.thread_time() - processor
        spent = [(each.tenant, each.spending) for each in flights]
        self._fairness.note(spent, seconds, processor)
