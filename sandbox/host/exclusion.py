"""Who may use what: one thread at a time what the pool knows, and one at a time each process."""

from __future__ import annotations

import threading
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
        self._taken: set[Hashable] = set()

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
        """Have a turn, as soon as nobody else has it. The lock is held."""
        while what in self._taken:
            self._ended.wait()
        self._taken.add(what)
        try:
            yield
        finally:
            self._taken.discard(what)
            self._ended.notify_all()

    def has(self, what: Hashable) -> bool:
        """Tell whether somebody has this turn. The lock is held."""
        return what in self._taken

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Let others have the lock while this thread waits for a process."""
        self._lock.release()
        try:
            yield
        finally:
            self._lock.acquire()
