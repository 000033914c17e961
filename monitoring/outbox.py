"""What waits to be published: bounded, and whoever measures never waits for it."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from monitoring.model import Measurement

MOST_BYTES_EACH = 1_024
"""More than any measurement takes of memory: nodes and places are shared, the rest is short."""


class Outbox:
    """Any thread puts, also in the middle of a signal handler or of garbage collection: no lock.

    A full one drops what comes, and counts it.
    """

    def __init__(self, most_bytes: int = 4 << 20) -> None:
        self.hold(most_bytes)
        self._waiting: deque[Measurement | None] = deque()
        self._count = itertools.count(1)
        self.dropped = 0
        """Beside other threads it may be told a moment late."""
        self.silent: set[int] = set()
        """Threads of which nothing is measured."""

    def __len__(self) -> int:
        """Return how many places are taken."""
        return len(self._waiting)

    def hold(self, most_bytes: int) -> None:
        """Let so much wait from now on."""
        self._most = max(1, most_bytes // MOST_BYTES_EACH)

    def put(self, measurement: Measurement, places: int = 1) -> None:
        """Let it be published, or drop it. What is larger than others takes more `places`."""
        if len(self._waiting) < self._most:
            self._waiting.append(measurement)
            for _ in range(places - 1):
                self._waiting.append(None)
        else:
            self.drop()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Measure nothing of this thread: to publish would make more to publish."""
        thread = threading.get_ident()
        self.silent.add(thread)
        try:
            yield
        finally:
            self.silent.discard(thread)

    def drop(self) -> None:
        """Count one that nobody is told of."""
        self.dropped = next(self._count)

    def take(self, most: int) -> list[Measurement]:
        """Return what waits, so many at most; nothing where nothing waits. For one thread."""
        taken: list[Measurement] = []
        for _ in range(len(self._waiting)):
            if len(taken) == most:
                break
            if (each := self._waiting.popleft()) is not None:
                taken.append(each)
        return taken
