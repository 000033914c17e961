"""A lock that is given to those who ask for it in turn."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from sandbox.host.allowance import Allowance


class FairLock:
    """One thread holds it at a time; who releases it gets it again only after all that wait.

    The thread that releases a common lock can have it again at once. So a long piece of work
    in many small parts would keep everybody else waiting to its end. It goes round among those who
    ask, whatever the number of their threads: whoever has had it comes behind all who wait when it
    is released, with all its threads, of which the one that came first is first.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._holder: Hashable = None
        """Who has it, or had it last."""
        self._waiting: OrderedDict[Hashable, deque[threading.Event]] = OrderedDict()

    @contextmanager
    def held(self, who: Hashable, allowance: Allowance) -> Iterator[None]:
        """Wait for the lock and hold it. Raises TookTooLong if it does not come in time."""
        self._acquire(who, allowance)
        try:
            yield
        finally:
            self._release()

    def _acquire(self, who: Hashable, allowance: Allowance) -> None:
        with self._guard:
            if not self._held:
                self._held, self._holder = True, who
                return
            mine = threading.Event()
            self._waiting.setdefault(who, deque()).append(mine)
        try:
            came = mine.wait(allowance.left())
        except BaseException:
            self._give_up(who, mine)
            raise
        if not came:
            self._give_up(who, mine)
            raise allowance.spent()

    def _give_up(self, who: Hashable, mine: threading.Event) -> None:
        with self._guard:
            if not mine.is_set():
                own = self._waiting[who]
                own.remove(mine)
                if not own:
                    del self._waiting[who]
                return
        self._release()  # it came just now

    def _release(self) -> None:
        with self._guard:
            if self._holder in self._waiting:
                self._waiting.move_to_end(self._holder)
            if not self._waiting:
                self._held = False
                return
            self._holder, own = next(iter(self._waiting.items()))
            own.popleft().set()
            if not own:
                del self._waiting[self._holder]
