"""A lock that is given in the order it was asked for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from sandbox.host.allowance import Allowance


class Turns:
    """One at a time, and who gives its turn back comes again only after all that wait.

    A common lock is had again at once by the thread that gives it back, so that a long
    piece of work in many turns would keep everybody else waiting to its end.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def turn(self, allowance: Allowance) -> Iterator[None]:
        """Wait for a turn and have it. Raises TookTooLong if it does not come in time."""
        self._take(allowance)
        try:
            yield
        finally:
            self._give()

    def _take(self, allowance: Allowance) -> None:
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Event()
            self._waiting.append(mine)
        try:
            came = mine.wait(allowance.left())
        except BaseException:
            self._leave(mine)
            raise
        if not came:
            self._leave(mine)
            raise allowance.spent()

    def _leave(self, mine: threading.Event) -> None:
        with self._guard:
            if not mine.is_set():
                self._waiting.remove(mine)
                return
        self._give()  # it came just now

    def _give(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False
