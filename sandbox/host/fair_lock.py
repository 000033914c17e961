"""A lock that is given in the order in which it was asked for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from sandbox.host.allowance import Allowance


class FairLock:
    """One thread holds it at a time; who releases it gets it again only after all that wait.

    The thread that releases a common lock can have it again at once. So a long piece of work
    in many small parts would keep everybody else waiting to its end.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def held(self, allowance: Allowance) -> Iterator[None]:
        """Wait for the lock and hold it. Raises TookTooLong if it does not come in time."""
        self._acquire(allowance)
        try:
            yield
        finally:
            self._release()

    def _acquire(self, allowance: Allowance) -> None:
        with self._guard:
            if not self._held:
                self._held = True
                return
            mine = threading.Event()
            self._waiting.append(mine)
        try:
            came = mine.wait(allowance.left())
        except BaseException:
            self._give_up(mine)
            raise
        if not came:
            self._give_up(mine)
            raise allowance.spent()

    def _give_up(self, mine: threading.Event) -> None:
        with self._guard:
            if not mine.is_set():
                self._waiting.remove(mine)
                return
        self._release()  # it came just now

    def _release(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._held = False
