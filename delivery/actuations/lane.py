"""What one device has still to get, sent in its order to whoever is connected for it.

What the store says is what is to be sent. A lane keeps nothing but what is on its way: when
one of those who had it to get is gone, or another has come, all that is not taken is sent anew,
in order. So a device may get again what was on its way, and gets nothing before what it follows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial

from delivery.actuations.together import Together
from delivery.actuations.ways import Report, Way
from servioticy.domain.actuations import State
from servioticy.domain.model import ServiceObjectKey
from servioticy.errors import Unavailable
from servioticy.ports.actuations import Actuation

RECHECK_SECONDS = 30.0
"""After these the store is asked again: what was on its way may be over, or reported on."""
FULL_SECONDS = 0.05
"""Between two looks whether a client has room again."""
RETRY_SECONDS = 1.0

log = logging.getLogger("servioticy.delivery")


class Lane:
    """Sends one device its actuations. All methods belong to the event loop's thread."""

    def __init__(
        self,
        key: ServiceObjectKey,
        store: Together,
        ways: Callable[[], Sequence[Way]],
        clock: Callable[[], int],
        taken: Callable[[str], None],
    ) -> None:
        """`ways` tells who is connected now, `clock` the milliseconds since 1970.

        `taken` hears of each that is taken, perhaps when this lane has ended.
        """
        self.key = key
        self._store = store
        self._ways = ways
        self._clock = clock
        self._tell = taken
        self._given: dict[str, object] = {}
        """What is on its way, each with its round."""
        self._taken: dict[str, None] = {}
        """What is taken, which the store does not know yet."""
        self._round = object()
        self._something = asyncio.Event()

    def wake(self) -> None:
        """Look again: something may be queued."""
        self._something.set()

    def taken(self, id_: str) -> None:
        """Note that somebody has got this one."""
        self._given.pop(id_, None)
        self._taken[id_] = None
        self._something.set()

    def begin_anew(self) -> None:
        """Send all that is not taken again, in order: others are connected than before."""
        self._round = object()
        self._given.clear()
        self._something.set()

    async def run(self) -> None:
        """Send until nothing waits, or nobody is connected."""
        while True:
            self._something.clear()
            seconds = RETRY_SECONDS
            try:
                await self._note_taken()
                page = await self._waiting()
                has_ended = not page or not self._ways()
                if has_ended and not self._something.is_set():
                    return
                await self._go_on(page)
                seconds = RECHECK_SECONDS
            except Unavailable as error:
                log.warning("actuations_wait", extra={"why": str(error)})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._something.wait()

    async def _waiting(self) -> list[Actuation]:
        page = await self._store.waiting(self.key)
        return [each for each in page if each.id not in self._taken]

    async def _note_taken(self) -> None:
        while self._taken:
            ids = list(self._taken)
            await self._store.moved(self.key, ids, State.DELIVERED)
            for each in ids:
                del self._taken[each]

    async def _go_on(self, page: Sequence[Actuation]) -> None:
        """Send what is new of those that wait, as long as nothing changes."""
        self._forget_all_but({each.id for each in page})
        new = [each for each in page if each.id not in self._given]
        if not new:
            return
        now = self._round
        await self._store.moved(self.key, [each.id for each in new], State.SENT)
        for each in new:
            ways = await self._ways_with_room(now)
            if not ways:
                return
            if each.expires_ms > self._clock():
                self._give(each, ways)

    async def _ways_with_room(self, now: object) -> Sequence[Way]:
        """Return who is to get it, when all have room for it; nobody, where others are connected
        than were in this round."""
        while now is self._round and (ways := self._ways()):
            if all(way.has_room() for way in ways):
                return ways
            await asyncio.sleep(FULL_SECONDS)
        return ()

    def _forget_all_but(self, waiting: Collection[str]) -> None:
        for each in self._given.keys() - waiting:
            del self._given[each]

    def _give(self, actuation: Actuation, ways: Sequence[Way]) -> None:
        self._given[actuation.id] = self._round
        report = Report(len(ways), partial(self._told, actuation.id, self._round))
        for way in ways:
            way.give(actuation, report.taken)

    def _told(self, id_: str, given_in: object, is_taken: bool) -> None:
        if is_taken:
            self._tell(id_)
        elif given_in is self._round:
            self.begin_anew()
