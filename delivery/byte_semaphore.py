"""Between the thread that reads and the loop that sends: a bounded number of bytes."""

from __future__ import annotations

import threading


class ByteSemaphore:
    """A semaphore that counts bytes and batches. A batch larger than all of it passes alone."""

    def __init__(self, max_bytes: int, max_batches: int) -> None:
        self._max_bytes = max_bytes
        self._max_batches = max_batches
        self._changed = threading.Condition()
        self._bytes = 0
        self._batches = 0
        self._closed = False
        self.waiting = 0
        """How many threads wait in `acquire`."""

    def acquire(self, size: int) -> bool:
        """Wait until a batch of this size fits, and count it.

        Returns False where the semaphore is closed: nobody sends the batch any more.
        """
        with self._changed:
            self.waiting += 1
            self._changed.wait_for(lambda: self._closed or self._fits(size))
            self.waiting -= 1
            if self._closed:
                return False
            self._bytes += size
            self._batches += 1
            return True

    def release(self, size: int) -> None:
        """Count a batch of this size no longer. Any thread may call this."""
        with self._changed:
            self._bytes -= size
            self._batches -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Let every thread that waits go on, and let none wait any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _fits(self, size: int) -> bool:
        return not self._batches or (
            self._bytes + size <= self._max_bytes and self._batches < self._max_batches
        )
