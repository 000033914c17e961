"""Places at the API for what clients ask: by tenant in turn, and so many of a tenant at once.

Who waits is served in rotation, one of each tenant. What a client asked that has gone meanwhile
is dropped while it waits, where nobody was promised anything.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

IN_ALL, EACH = 80, 20


class Places:
    """All methods belong to the event loop's thread."""

    def __init__(self, in_all: int = IN_ALL, each: int = EACH) -> None:
        self._free = in_all
        self._each = each
        self._used: Counter[int] = Counter()
        self._waiting: OrderedDict[int, deque[asyncio.Future[bool]]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many wait."""
        return sum(len(each) for each in self._waiting.values())

    @asynccontextmanager
    async def of(self, tenant: int, gone: asyncio.Event | None = None) -> AsyncIterator[bool]:
        """Have one of the tenant's places; without one, where `gone` is set before it is free."""
        has_place = await self._take(tenant, gone)
        try:
            yield has_place
        finally:
            if has_place:
                self._give_back(tenant)

    async def _take(self, tenant: int, gone: asyncio.Event | None) -> bool:
        if gone is not None and gone.is_set():
            return False
        place: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(place)
        self._pass_on()
        end = asyncio.create_task(gone.wait()) if gone is not None and not place.done() else None
        try:
            await asyncio.wait(
                [each for each in (place, end) if each], return_when="FIRST_COMPLETED"
            )
        except asyncio.CancelledError:
            self._leave(tenant, place)
            raise
        finally:
            if end is not None:
                end.cancel()
        if not place.done():
            self._leave(tenant, place)
            return False
        return True

    def _give_back(self, tenant: int) -> None:
        self._free += 1
        self._used[tenant] -= 1
        if not self._used[tenant]:
            del self._used[tenant]
        self._pass_on()

    def _leave(self, tenant: int, place: asyncio.Future[bool]) -> None:
        """Wait no more; a place that was given in this very moment goes to somebody else."""
        if place.done():
            self._give_back(tenant)
            return
        waiting = self._waiting[tenant]
        waiting.remove(place)
        if not waiting:
            del self._waiting[tenant]

    def _pass_on(self) -> None:
        """Give what is free to those who wait, one to each tenant that may have more."""
        for tenant in list(self._waiting):
            if self._free <= 0:
                return
            if self._used[tenant] >= self._each:
                continue
            waiting = self._waiting.pop(tenant)
            waiting.popleft().set_result(True)
            if waiting:
                self._waiting[tenant] = waiting  # behind all the others
            self._free -= 1
            self._used[tenant] += 1
