"""The porch: what all who have not been let in may take of the event loop together.

Nobody knows yet whose their bytes are, and reading them takes the time of those who are known. So
they have one small part of it, by turns: address after address, connection after connection.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Protocol

SHARE = 0.2
"""Of the loop's time, for all strangers together, where they want more than that for long: as
much for those who are inside, and as much for the door."""
AHEAD_SECONDS = 0.1
"""So much rest may be owed before anybody waits: a few who come at once are taken at once. And
on a busy machine, where the loop itself is woken late, no turn is lost for that."""
MOST_WAITING = 1_000
"""Connections that wait for a turn with the same others: a second of turns for heads. Of more the
one that has waited longest goes: it, or another, would wait for one that has gone already."""
EVENT_SECONDS = 0.00005
"""What a turn costs beside what is measured: to be told of bytes, and to take them in."""


Work = Callable[[], object]


class Waiter(Protocol):
    """Whose turn it is to be; it waits for one at a time."""

    def abort(self) -> None:
        """Wait no longer: there are too many."""


class Loop(Protocol):
    """The event loop, as far as the porch needs it."""

    def time(self) -> float:
        """Return seconds of a clock that never goes back."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> object:
        """Call it after so many seconds."""


class Porch:
    """Gives turns to strangers, and rests after each in proportion to what it took."""

    def __init__(self, loop: Loop, clock: Callable[[], float], share: float = SHARE) -> None:
        """`clock` measures what a turn takes."""
        self._loop = loop
        self._clock = clock
        self._share = share
        self._rested_at = 0.0
        """when all is paid for that strangers have taken"""
        self._waiting: OrderedDict[Hashable, OrderedDict[Waiter, Work]] = OrderedDict()
        self._woken = False

    def turn(self, owner: Hashable, who: Waiter, work: Work) -> bool:
        """Do it now, or in its turn among the owner's; tell whether it is done."""
        if not self._waiting and self.owed() <= 0:
            self._do(work)
            return True
        self.wait(owner, who, work)
        return False

    def wait(self, owner: Hashable, who: Waiter, work: Work) -> None:
        """Do it in its turn, behind those who wait."""
        own = self._waiting.setdefault(owner, OrderedDict())
        own[who] = work
        self._wake()
        if len(own) > MOST_WAITING:
            longest, _ = own.popitem(last=False)
            longest.abort()

    def owed(self) -> float:
        """Return for how many seconds no stranger has a turn; 0 or less: one may."""
        return self._rested_at - AHEAD_SECONDS - self._loop.time()

    def charge(self, seconds: float) -> None:
        """Count what strangers have just taken."""
        seconds += EVENT_SECONDS
        begun = self._loop.time() - seconds
        self._rested_at = max(self._rested_at, begun) + seconds / self._share

    def _do(self, work: Work) -> None:
        begun = self._clock()
        try:
            work()
        finally:
            self.charge(self._clock() - begun)

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            self._loop.call_later(max(0.0, self.owed()), self._next)

    def _next(self) -> None:
        """Give one turn: whoever is known and ready comes before the next one."""
        self._woken = False
        if self._waiting and self.owed() <= 0:
            owner, own = self._waiting.popitem(last=False)
            _, work = own.popitem(last=False)
            if own:
                self._waiting[owner] = own  # behind all others
            self._do(work)
        if self._waiting:
            self._wake()
