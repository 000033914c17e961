"""Threads for instances: one that has ended is there for the next, with what it has open."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

KEEP_SECONDS = 5.0
"""Without an instance for so long a thread ends, and with it its connections."""


class Hands:
    """As many threads as there is work for at once; none holds up the end of its process."""

    def __init__(self, close: Callable[[], None], keep_seconds: float = KEEP_SECONDS) -> None:
        """`close` ends what a thread has open, in it."""
        self._close = close
        self._keep_seconds = keep_seconds
        self._lock = threading.Lock()
        self._works: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._idle = 0
        """Threads that wait and to which nothing has been given yet."""

    def prepare(self, ready: Callable[[], None]) -> None:
        """Have one more thread, which is ready when it is given its first work, however late."""
        threading.Thread(target=self._live, args=(ready, True), daemon=True).start()

    def give(self, work: Callable[[], None]) -> None:
        """Have a thread do it, which raises nothing."""
        with self._lock:
            if self._idle:
                self._idle -= 1
                self._works.put(work)
                return
        threading.Thread(target=self._live, args=(work,), daemon=True).start()

    def _live(self, work: Callable[[], None] | None, is_patient: bool = False) -> None:
        while work is not None:
            work()
            work = self._next(None if is_patient else self._keep_seconds)
            is_patient = False
        self._close()

    def _next(self, seconds: float | None) -> Callable[[], None] | None:
        with self._lock:
            self._idle += 1
        try:
            return self._works.get(timeout=seconds)
        except queue.Empty:
            with self._lock:
                try:
                    return self._works.get_nowait()  # given while the lock was waited for
                except queue.Empty:
                    self._idle -= 1
                    return None
