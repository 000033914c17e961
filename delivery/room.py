"""Between the thread that reads and the loop that sends: a bounded number of bytes."""

from __future__ import annotations

import threading


class Room:
    """Who enters waits until there is room; what is larger than the room enters alone."""

    def __init__(self, max_bytes: int, max_batches: int) -> None:
        self._max_bytes = max_bytes
        self._max_batches = max_batches
        self._changed = threading.Condition()
        self._bytes = 0
        self._batches = 0
        self._closed = False

    def enter(self, size: int) -> bool:
        """Wait for room and take it; False: it is closed, nobody takes anything any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._fits(size))
            if self._closed:
                return False
            self._bytes += size
            self._batches += 1
            return True

    def leave(self, size: int) -> None:
        """Give the room back. Any thread may."""
        with self._changed:
            self._bytes -= size
            self._batches -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Nobody waits any longer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _fits(self, size: int) -> bool:
        return not self._batches or (
            self._bytes + size <= self._max_bytes and self._batches < self._max_batches
        )
