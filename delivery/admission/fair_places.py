"""Places that are waited for: so many in all, so many of one owner, and owners get them in turn.

Who has many waiting gets the next place only after everybody else who waits got one. So one
that comes waits for the places of others to become free, and not for all who came before it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class FairPlaces:
    """All methods belong to the event loop's thread."""

    def __init__(self, in_all: int, each: int) -> None:
        self._free = in_all
        self._each = each
        self._in_use: Counter[Hashable] = Counter()
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def place(self, owner: Hashable) -> AsyncIterator[None]:
        """Wait for a place, and have it for as long as this lasts."""
        await self.acquire(owner)
        try:
            yield
        finally:
            self.release(owner)

    async def acquire(self, owner: Hashable) -> None:
        """Wait for a place, to be released later."""
        if self._free and self._in_use[owner] < self._each and owner not in self._waiting:
            self._take(owner)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the place became free in this very moment
                self.release(owner)
            else:
                self._forget(owner, turn)
            raise

    def release(self, owner: Hashable) -> None:
        """Give a place back."""
        self._free += 1
        self._in_use[owner] -= 1
        self._forget_unused(owner)
        for next_ in list(self._waiting):
            if not self._free:
                return
            if self._in_use[next_] < self._each:
                self._give(next_)

    def _take(self, owner: Hashable) -> None:
        self._free -= 1
        self._in_use[owner] += 1

    def _give(self, owner: Hashable) -> None:
        """Give a place to the first of this owner who waits for one."""
        queue = self._waiting.pop(owner)
        while queue:
            turn = queue.popleft()
            if not turn.done():
                self._take(owner)
                turn.set_result(None)
                break
        if queue:
            self._waiting[owner] = queue  # behind all the others
        self._forget_unused(owner)

    def _forget(self, owner: Hashable, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(owner, deque())
        if turn in queue:
            queue.remove(turn)
        if not queue:
            self._waiting.pop(owner, None)
        self._forget_unused(owner)

    def _forget_unused(self, owner: Hashable) -> None:
        if not self._in_use[owner]:
            # Tenants come and go; an empty entry each would be a leak.
            del self._in_use[owner]
