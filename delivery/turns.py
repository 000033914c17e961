"""Turns in the loop, by tenant: who has much to do does a little of it, then others do.

Asyncio runs whatever is ready before it looks at sockets again; so a thousand tasks that are
ready at once hold everybody up together, though each of them is short. Whoever has to do a
piece of work for a tenant takes a turn for it first. In one round of the loop a tenant has one,
and only a few tenants have.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable

AT_ONCE = 8
"""Tenants that have a turn in one round of the loop."""
CATCH_UP = 20
"""Rounds that are made up for at most, where the loop was woken late: on a busy machine it may be
so ten times as late as a round lasts, and turns would become as much fewer."""


class Turns:
    """All methods belong to the event loop's thread."""

    def __init__(self, at_once: int = AT_ONCE, seconds: float = 0.0) -> None:
        """`seconds`: so long a round lasts at least; 0: one of the loop."""
        self.taken = 0
        """How many there were so far."""
        self._at_once = at_once
        self._seconds = seconds
        self._had: set[Hashable] = set()
        """Who has had one in this round."""
        self._waiting: OrderedDict[Hashable, deque[Callable[[], bool]]] = OrderedDict()
        self._comes_round = False
        self._since = 0.0
        """When the present round began."""

    async def take(self, owner: Hashable) -> None:
        """Return when it is the owner's turn; at once, where nobody is before it."""
        if self._is_free(owner):
            self._note(owner)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def begin() -> bool:
            if turn.done():
                return False  # whoever waited for it has gone
            turn.set_result(None)
            return True

        self._wait(owner, begin)
        await turn

    def ask(self, owner: Hashable, work: Callable[[], bool]) -> bool:
        """Do this when it is the owner's turn; tell whether that was now.

        It tells whether it has made use of the turn, and does not raise.
        """
        if not self._is_free(owner):
            self._wait(owner, work)
            return False
        self._note(owner)
        work()
        return True

    def _is_free(self, owner: Hashable) -> bool:
        return not self._waiting and owner not in self._had and len(self._had) < self._at_once

    def _wait(self, owner: Hashable, work: Callable[[], bool]) -> None:
        self._waiting.setdefault(owner, deque()).append(work)
        self._go_round()

    def _note(self, owner: Hashable) -> None:
        self.taken += 1
        self._had.add(owner)
        self._go_round()

    def _go_round(self) -> None:
        if not self._comes_round:
            self._comes_round = True
            loop = asyncio.get_running_loop()
            self._since = loop.time()
            if self._seconds:
                loop.call_later(self._seconds, self._round)
            else:
                loop.call_soon(self._round)

    def _round(self) -> None:
        self._comes_round = False
        for _ in range(self._due()):
            self._next_round()
        if self._waiting:
            self._go_round()

    def _due(self) -> int:
        """Return how many rounds are over."""
        if not self._seconds:
            return 1
        passed = (asyncio.get_running_loop().time() - self._since) / self._seconds
        return max(1, min(CATCH_UP, int(passed)))

    def _next_round(self) -> None:
        self._had.clear()
        for _ in range(min(self._at_once, len(self._waiting))):
            owner, queue = self._waiting.popitem(last=False)
            while queue:
                work = queue.popleft()
                if work():
                    self._note(owner)
                    break
            if queue:
                # Behind all the others, and before what it has asked for just now.
                self._waiting[owner] = queue + self._waiting.pop(owner, deque())
