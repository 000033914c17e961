"""Which devices are connected, and a lane for each of them that has something to get.

A device that is away costs nothing here, whatever waits for it. The store is asked a few times
a second, once for all, what is new, and what waits for those who have just come.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from delivery.actuations.lane import Lane
from delivery.actuations.together import Ask, Together
from delivery.actuations.ways import Way
from delivery.repeating import for_ever
from servioticy.domain.actuations import State
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.actuations import Actuations

LOOK_SECONDS = 0.1

MOST_ASKED = 1_000
"""Devices that have come and are asked about at once."""
NOBODY = 0
"""In whose turn the store is asked for all."""

log = logging.getLogger("servioticy.delivery")


def _nobody_calls(_keys: Iterable[ServiceObjectKey]) -> None:
    """Devices are reached by connections alone."""


class Queues:
    """Sends what waits for devices. All methods belong to the event loop's thread."""

    def __init__(
        self,
        store: Actuations,
        topics: Callable[[ServiceObjectKey], Way] | None,
        ask: Ask,
        calls: Callable[[Iterable[ServiceObjectKey]], None] = _nobody_calls,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`topics` returns the way to the clients of a broker that subscribe to a device's topic,
        whether there are any or not, and is None where there is no broker; `calls` hears of
        those that somebody is called for."""
        self.lanes: dict[ServiceObjectKey, Lane] = {}
        self._store = store
        self._topics = topics
        self._ask = ask
        self._calls = calls
        self._clock = clock
        self._together = Together(store, ask, self._now)
        self._joined: defaultdict[ServiceObjectKey, dict[Way, None]] = defaultdict(dict)
        self._came: dict[ServiceObjectKey, None] = {}
        self._tenants: set[int] = set()
        """Somebody has come for all devices of these."""
        self._since: str | None = None
        self._running: dict[ServiceObjectKey, asyncio.Task[None]] = {}
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look for what waits from now on."""
        self._looking = asyncio.create_task(for_ever(self._look_later, "actuations"))

    async def stop(self) -> None:
        """Send no more; what was on its way comes again."""
        tasks = [*self._running.values(), *([self._looking] if self._looking else [])]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._together.stop()

    # Who is connected

    def join(self, key: ServiceObjectKey, way: Way) -> None:
        """Send a device its actuations this way, too."""
        self._joined[key][way] = None
        self.came(key)

    def leave(self, key: ServiceObjectKey, way: Way) -> None:
        """Send nothing more this way, and what it had to take by the others."""
        self._joined[key].pop(way, None)
        if not self._joined[key]:
            del self._joined[key]
        if key in self.lanes:
            self.lanes[key].begin_anew()

    def came(self, key: ServiceObjectKey) -> None:
        """Note that somebody has come who is to get what waits for this device."""
        self._came[key] = None
        if key in self.lanes:
            self.lanes[key].begin_anew()

    def came_for_all(self, tenant: int) -> None:
        """Note that somebody has come who is to get what waits for any device of a tenant."""
        self._tenants.add(tenant)

    async def delivered(self, key: ServiceObjectKey, id_: str) -> None:
        """Note now that a device has got this one. Raises Unavailable."""
        await self._together.moved(key, [id_], State.DELIVERED)

    def _ways(self, key: ServiceObjectKey) -> Sequence[Way]:
        topics = () if self._topics is None else (self._topics(key),)
        ways = (*topics, *self._joined.get(key, ()))
        return [each for each in ways if each.is_there()]

    # What waits

    async def _look_later(self) -> None:
        await asyncio.sleep(LOOK_SECONDS)
        await self.look()

    async def look(self) -> None:
        """Look once for what is new, and for those who have come. Raises Unavailable."""
        for tenant in list(self._tenants):
            waiting = partial(self._store.waiting_for, tenant, self._now())
            for each in await self._ask(tenant, waiting):
                self.came(each)
            self._tenants.discard(tenant)
        asked = list(self._came)[:MOST_ASKED]
        news = await self._ask(NOBODY, partial(self._store.news, self._since, asked))
        self._since = news.upto
        for each in asked:
            self._came.pop(each, None)
        self._calls(news.calling)
        for each in news.service_objects:
            if self._ways(each):
                self._lane(each).wake()

    def _lane(self, key: ServiceObjectKey) -> Lane:
        """Return the lane of a device, which runs."""
        lane = self.lanes.get(key)
        if lane is None:
            ways, taken = partial(self._ways, key), partial(self._taken, key)
            lane = self.lanes[key] = Lane(key, self._together, ways, self._now, taken)
            self._running[key] = asyncio.create_task(self._run(key, lane))
        return lane

    async def _run(self, key: ServiceObjectKey, lane: Lane) -> None:
        try:
            await lane.run()
        except Exception:
            log.exception("lane_failed", extra={"service_object": key.id})
            self._came[key] = None  # it is begun anew
        finally:
            del self.lanes[key], self._running[key]

    def _taken(self, key: ServiceObjectKey, id_: str) -> None:
        self._lane(key).taken(id_)

    def _now(self) -> int:
        return int(self._clock() * 1000)
