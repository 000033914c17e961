"""Stores and sends what was computed late, in threads beside the partition's.

That waits for the disk, and until all is acknowledged: the partition's own thread does not. One
transaction at a time in each. What is stored is sent a part at a time, and others have their turn
between two parts: of one update there may be thousands of records to send, and nobody else's is to
wait for that.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

from pipeline.batching.flow import Flight
from pipeline.engine import Engine
from pipeline.sharing.fairness import Fairness
from pipeline.state.late_base import LateBase
from pipeline.state.partition import Partition
from pipeline.work import Work
from servioticy.errors import Unavailable
from servioticy.ports.effects import Effect
from servioticy.ports.output import Output
from servioticy.ports.put_off import TreeKey


@dataclass(slots=True, eq=False)
class Storing:
    """Something on its way to where it is stored, and then to subscribers."""

    base: LateBase
    """Has what is to be noted when it is there."""
    flights: Sequence[Flight]
    stored: Future[None] = field(default_factory=Future)
    sent: Future[None] = field(default_factory=Future)
    """Done when nothing of it is left; both have the error, where there was one before."""
    seconds: float = 0.0
    processor: float = 0.0
    """What its turns have taken."""

    def fail(self, error: BaseException) -> None:
        """Note that nothing more happens of it."""
        if not self.stored.done():
            self.stored.set_exception(error)
        self.sent.set_exception(error)


class Beside:
    """Stores what it is given, and sends it in turns."""

    def __init__(
        self,
        partition: Partition,
        engine: Engine,
        fairness: Fairness,
        new_output: Callable[[], Output],
        executor: Executor,
    ) -> None:
        """`new_output` makes the one that is used here, by one thread of the `executor`."""
        self._partition = partition
        self._emit = engine.stages.emit
        self._fairness = fairness
        self._new_output = new_output
        self._output: Output | None = None
        self._executor = executor
        self._lock = threading.Lock()
        self._left: deque[tuple[Storing, Iterator[None]]] = deque()
        self._runs = False
        self._last: Storing | None = None

    @property
    def is_storing(self) -> bool:
        """Whether the last transaction has not ended."""
        return self._last is not None and not self._last.stored.done()

    def store(
        self,
        work: Work,
        flights: Sequence[Flight],
        emitted: Sequence[TreeKey] = (),
        effect: Effect | None = None,
    ) -> Storing:
        """Begin to store what has come of these pieces, of which the work is the records.

        And that all is emitted of the records `emitted`: no other thread may store that; and the
        `effect`, where the work is a control record.
        """
        contested = self._fairness.shares.contested
        base = LateBase(self._partition, work, emitted, effect, contested=contested)
        storing = self._last = Storing(base, flights)
        with self._lock:
            self._left.append((storing, self._steps(work, storing)))
            begins, self._runs = not self._runs, True
        if begins:
            self._executor.submit(self._run)
        return storing

    def _run(self) -> None:
        """In the other thread, until nothing is left."""
        while (turn := self._next()) is not None:
            storing, steps = turn
            began, processor = time.monotonic(), time.thread_time()
            try:
                if storing.base.is_withdrawn:
                    raise Unavailable("the partition is begun anew")
                is_left = next(steps, steps) is None
            except BaseException as error:  # noqa: BLE001  raised by who asks what came of it
                storing.fail(error)
                continue
            storing.seconds += time.monotonic() - began
            storing.processor += time.thread_time() - processor
            if is_left:
                with self._lock:
                    self._left.append(turn)
                continue
            spent = [(each.tenant, each.spending) for each in storing.flights]
            self._fairness.note(spent, storing.seconds, storing.processor)
            storing.sent.set_result(None)

    def _next(self) -> tuple[Storing, Iterator[None]] | None:
        with self._lock:
            if self._left:
                return self._left.popleft()
            self._runs = False
            return None

    def _steps(self, work: Work, storing: Storing) -> Iterator[None]:
        output = self._output = self._output or self._new_output()
        states = [each.state for each in storing.flights if each.state is not None]
        left = self._emit(states, (), work, storing.base, output)
        storing.stored.set_result(None)
        yield from left
