"""Turns in the loop, by tenant: who has much to do does a little of it, then others do.

Asyncio runs whatever is ready before it looks at sockets again; so a thousand tasks that are
ready at once hold everybody up together, though each of them is short. Whoever has to do a
piece of work for a tenant takes a turn for it first. In one round of the loop a tenant has one,
and only a few tenants have.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable

AT_ONCE = 8
"""Tenants that have a turn in one round of the loop."""


class Turns:
    """All methods belong to the event loop's thread."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self.taken = 0
        """How many there were so far."""
        self._at_once = at_once
        self._had: set[Hashable] = set()
        """Who has had one in this round."""
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()
        self._comes_round = False

    async def take(self, owner: Hashable) -> None:
        """Return when it is the owner's turn; at once, where nobody is before it."""
        if not self._waiting and owner not in self._had and len(self._had) < self._at_once:
            self._note(owner)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        self._go_round()
        await turn

    def _note(self, owner: Hashable) -> None:
        self.taken += 1
        self._had.add(owner)
        self._go_round()

    def _go_round(self) -> None:
        if not self._comes_round:
            self._comes_round = True
            asyncio.get_running_loop().call_soon(self._round)

    def _round(self) -> None:
        self._comes_round = False
        self._had.clear()
        for _ in range(min(self._at_once, len(self._waiting))):
            owner, queue = self._waiting.popitem(last=False)
            while queue:
                turn = queue.popleft()
                if not turn.done():  # else whoever waited for it has gone
                    turn.set_result(None)
                    self._note(owner)
                    break
            if queue:
                self._waiting[owner] = queue  # behind all the others
        if self._waiting:
            self._go_round()
