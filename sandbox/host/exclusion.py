"""Who may use what: one thread at a time what the pool knows, and one at a time each process."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from types import TracebackType


class Exclusion:
    """A lock, which a thread lets others have while it waits for a process, and turns below it.

    What a turn is of (a tenant, the checker) nobody else has until it ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)
        self._queues: dict[Hashable, deque[object]] = {}
        """of each that somebody has: who has it, and who comes after that"""

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._lock.release()

    @contextmanager
    def of(self, what: Hashable) -> Iterator[None]:
        """Have a turn, after those that have come before. The lock is held.

        So whoever takes many in a row waits between them for others.
        """
        queue, ticket = self._queues.setdefault(what, deque()), object()
        queue.append(ticket)
        try:
            while queue[0] is not ticket:
                self._ended.wait()
            yield
        finally:
            queue.remove(ticket)
            if not queue:
                del self._queues[what]
            self._ended.notify_all()

    def has(self, what: Hashable) -> bool:
        """Tell whether somebody has this turn. The lock is held."""
        return what in self._queues

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Let others have the lock while this thread waits for a process."""
        self._lock.release()
        try:
            yield
        finally:
            self._lock.acquire()
