"""One thread at a time, callers by turns, and nobody waits without end."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from servioticy.errors import Unavailable


class Turns:
    """A lock that goes around: whoever has much to do delays another by one turn, not by all.

    Of one caller's threads the one that came first is first.
    """

    def __init__(
        self, seconds: float, why: str = "too many large documents are being read"
    ) -> None:
        """`seconds`: the longest that a thread waits for its turn; `why` it does not come then."""
        self._seconds = seconds
        self._why = why
        self._guard = threading.Lock()
        self._taken = False
        self._waiting: OrderedDict[Hashable, deque[threading.Event]] = OrderedDict()

    @contextmanager
    def turn(self, caller: Hashable) -> Iterator[None]:
        """Wait for a turn and have it. Raises Unavailable if it does not come in time."""
        self._take(caller)
        try:
            yield
        finally:
            self._give()

    def _take(self, caller: Hashable) -> None:
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Event()
            self._waiting.setdefault(caller, deque()).append(mine)
        if not mine.wait(self._seconds) and self._leave(caller, mine):
            raise Unavailable(f"{self._why}; try again later")

    def _leave(self, caller: Hashable, mine: threading.Event) -> bool:
        """Wait no longer; False: the turn has come in this very moment."""
        with self._guard:
            if mine.is_set():
                return False
            own = self._waiting[caller]
            own.remove(mine)
            if not own:
                del self._waiting[caller]
            return True

    def _give(self) -> None:
        with self._guard:
            if not self._waiting:
                self._taken = False
                return
            caller, own = self._waiting.popitem(last=False)
            next_one = own.popleft()
            if own:
                self._waiting[caller] = own  # behind all others
            next_one.set()
