"""All feeds: which subscriptions there are, what those that are behind have to read, and how far
each has got.

Nothing is stored for an update that goes out: a feed's cursor is, some times a second while it
moves, and now and then while nothing comes for it. So after a crash a feed repeats at most what
was acknowledged since, and the topic is read again from the earliest place that one stands at.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from delivery.admission.fair_executor import FairExecutor
from delivery.backlog import Backlog
from delivery.fanout import FanOut, Subscriber
from delivery.feeds.beginnings import Beginnings
from delivery.feeds.feed import Feed
from delivery.feeds.rereading import Rereading
from delivery.repeating import for_ever
from delivery.watchers import Watchers
from servioticy.errors import Unavailable
from servioticy.ports.cursors import About, Change, Claim, Cursors, DurableSubscription, Source
from servioticy.ports.emitted import EmittedPages
from servioticy.ports.history import History

STORE_SECONDS = 0.003
"""Those that move within it are stored together."""

PASS_OVER_SECONDS = 30.0
LOOK_SECONDS = 0.5
"""Between two looks for subscriptions that are new, changed or gone."""

CHANGED_AT_ONCE = 32
"""Subscriptions that begin or end before others go on."""

MOST_STREAMS = 1_000
"""Of a source that a client watches as long as it is connected."""
log = logging.getLogger("servioticy.delivery")

T = TypeVar("T")

Receiver = Callable[[Feed], Awaitable[None]]
"""Delivers what a feed gives, until it is cancelled."""


class Feeds:
    """Keeps a feed for each durable subscription, and somebody who empties it.

    All methods belong to the event loop's thread.
    """

    def __init__(
        self,
        store: Cursors,
        pages: EmittedPages,
        history: History,
        fanout: FanOut,
        watchers: Watchers[Subscriber],
        backlog: Backlog,
        calls: FairExecutor,
        receivers: Mapping[str, Receiver],
    ) -> None:
        """`receivers` are by the name of the callback; subscriptions with others are not fed."""
        self.feeds: dict[str, Feed] = {}
        self.claim = Claim("", frozenset(), frozenset(), 1)
        """Which of all subscriptions this process delivers to; of several, each to some."""
        self._store = store
        self.beginnings = Beginnings(pages)
        self.fanout = fanout
        self._watchers = watchers
        self.backlog = backlog
        self._receivers = receivers
        self._known: Mapping[str, Change] = {}
        self._lent: dict[str, Feed] = {}
        self._looked = asyncio.Event()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._moved: dict[str, Feed] = {}
        self._has_moved = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._rereading = Rereading(pages, history, fanout, calls, self._has, self.changed)
        # One thread: the claim is its connection's.
        self._calls = calls
        self._storing = ThreadPoolExecutor(1, "cursors")
        fanout.resting.ended = self._go_on

    @property
    def behind(self) -> int:
        """How many feeds have something to read; may be asked from any thread."""
        return sum(not each.is_live for each in list(self.feeds.values()))

    def start(self) -> None:
        """Feed from now on. What is emitted must be read already (see FanOut.begin_at)."""
        works = (self._look, self._rereading.read, self._note, self._pass_over)
        self._tasks = [asyncio.create_task(for_ever(each, "feeds")) for each in works]

    async def stop(self) -> None:
        """Feed no more, and store how far all have got."""
        for task in (*self._tasks, *self._running.values()):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._running.values(), return_exceptions=True)
        await self._rereading.stop()
        try:
            await self._store_cursors()
        except Unavailable as error:
            log.warning("cursors_not_stored", extra={"why": str(error)})
        self._storing.shutdown(wait=False)

    async def _asked(self, ask: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._storing, ask)

    # Which there are

    async def _look(self) -> None:
        """Look once for subscriptions that are new, changed or gone."""
        await asyncio.sleep(LOOK_SECONDS)
        claim = await self._asked(self._store.claim)
        if claim.fence != self.claim.fence:
            # What was held may have been another's meanwhile: begin from what is stored.
            await self._remove_all(self._known.keys())
            self._known = {}
        before, self.claim = self.claim, claim
        if claim[:3] != before[:3]:
            log.info("feeds_claimed", extra={"slots": len(claim.slots - claim.surplus)})
        found = await self._asked(self._store.changes) if claim.slots else {}
        now = {id_: change for id_, change in found.items() if claim.has(change.key)}
        await self._remove_all(self._known.keys() - now.keys())
        if claim.surplus:
            self._known = {each: self._known[each] for each in self._known.keys() & now.keys()}
            await self._asked(partial(self._store.release, claim.surplus))
            self.claim = claim._replace(slots=claim.slots - claim.surplus, surplus=frozenset())
        changed = [each for each, change in now.items() if self._known.get(each) != change]
        if changed:
            await self._store_cursors()
        ask = partial(self._store.subscriptions, changed)
        for number, each in enumerate(await self._asked(ask) if changed else ()):
            await _others_first(number)
            known = self._known.get(each.id)
            if each.id in self.feeds and known and known.own == now[each.id].own:
                self.be_about(self.feeds[each.id], each)
                continue
            self._remove(each.id)
            if each.callback in self._receivers:
                self._add(each)
        self._known = now
        self._looked.set()

    async def looked(self) -> None:
        """Return when all subscriptions are known that are there now."""
        for _ in range(2):  # the look that is under way may have begun before
            self._looked.clear()
            await self._looked.wait()

    def lend(self, feed: Feed) -> None:
        """Feed a connection of a client, until it is taken back; nothing of that is stored."""
        self._lent[feed.subscription.id] = feed
        for stream in feed.subscription.streams:
            self._watchers.add(stream, feed)
        if not feed.go_live():
            self.changed(feed)

    def take_back(self, feed: Feed) -> None:
        """Feed it no more."""
        self._lent.pop(feed.subscription.id, None)
        self._forget(feed)

    def _add(self, subscription: DurableSubscription) -> None:
        feed = Feed(subscription, self.backlog, self.fanout, self.changed)
        self.feeds[subscription.id] = feed
        for stream in subscription.streams:
            self._watchers.add(stream, feed)
        receive = self._receivers[subscription.callback](feed)
        self._running[subscription.id] = asyncio.create_task(_logged(receive, subscription.id))
        self.changed(feed)

    async def about(self, tenant: int, source: Source) -> About:
        """Return the streams of a source, of what a tenant may read. Raises Unavailable."""
        ask = partial(self._store.about, tenant, source, MOST_STREAMS + 1)
        return await self._calls.run(tenant, ask)

    def be_about(self, feed: Feed, subscription: DurableSubscription) -> None:
        """Note that the streams of a feed may be others: its receiver goes on."""
        before, now = feed.subscription.streams.keys(), subscription.streams.keys()
        feed.be_about(subscription)
        for stream in before - now:
            self._watchers.remove(stream, feed)
        for stream in now - before:
            self._watchers.add(stream, feed)

    def _remove(self, subscription: str) -> None:
        feed = self.feeds.pop(subscription, None)
        if feed is None:
            return
        self._running.pop(subscription).cancel()
        self._forget(feed)

    async def _remove_all(self, subscriptions: Collection[str]) -> None:
        """Feed these no more; nothing is on its way to their receivers when this returns."""
        gone = [each for each in subscriptions if each in self._running]
        ending = [self._running[each] for each in gone]
        for number, each in enumerate(gone):
            self._remove(each)
            await _others_first(number)
        await asyncio.gather(*ending, return_exceptions=True)

    def _forget(self, feed: Feed) -> None:
        id_ = feed.subscription.id
        feed.is_live = False  # what is being offered to it passes by
        for stream in feed.subscription.streams:
            self._watchers.remove(stream, feed)
        self._moved.pop(id_, None)
        self._rereading.forget(feed)
        self.backlog.remove(feed)

    def changed(self, feed: Feed) -> None:
        """Note that a feed may have to read on, or has something new to store."""
        id_ = feed.subscription.id
        if not self._has(feed):
            return
        if id_ not in self._lent:
            self._moved[id_] = feed
            self._has_moved.set()
        if not feed.is_live and feed.has_room:
            self._rereading.want(feed)

    def _go_on(self, tenants: Collection[int]) -> None:
        """Read on for those whose tenants rested."""
        for feed in (*self.feeds.values(), *self._lent.values()):
            if feed.tenant in tenants:
                self.changed(feed)

    def _has(self, feed: Feed) -> bool:
        id_ = feed.subscription.id
        return (self.feeds.get(id_) or self._lent.get(id_)) is feed

    # How far they have got

    async def _note(self) -> None:
        """Store once what has moved."""
        await self._has_moved.wait()
        self._has_moved.clear()
        await asyncio.sleep(STORE_SECONDS)
        await self._store_cursors()

    async def _store_cursors(self) -> None:
        moved, self._moved = self._moved, {}
        cursors = {id_: each.place.stored() for id_, each in moved.items()}
        if not cursors:
            return
        try:
            await self._asked(partial(self._store.store, cursors))
        except BaseException:
            self._moved = moved | self._moved
            self._has_moved.set()  # whoever tried it: receivers wait for it
            raise
        for id_, each in moved.items():
            each.note_stored(cursors[id_])

    async def _pass_over(self) -> None:
        """Let all for which nothing waits stand where the fan-out stands."""
        await asyncio.sleep(PASS_OVER_SECONDS)
        self._moved |= {id_: each for id_, each in self.feeds.items() if each.pass_over()}
        self._has_moved.set()


async def _others_first(number: int) -> None:
    """Let others go on, now and then: somebody may have made ten thousand at once."""
    if number % CHANGED_AT_ONCE == CHANGED_AT_ONCE - 1:
        await asyncio.sleep(0)


async def _logged(receive: Awaitable[None], subscription: str) -> None:
    try:
        await receive
    except Exception:
        log.exception("receiver_failed", extra={"subscription": subscription})
