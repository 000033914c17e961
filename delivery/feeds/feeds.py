"""All feeds: which subscriptions there are, what those that are behind have to read, and how far
each has got.

Nothing is stored for an update that goes out: a feed's cursor is, some times a second while it
moves, and now and then while nothing comes for it. So after a crash a feed repeats at most what
was acknowledged since, and the topic is read again from the earliest place that one stands at.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from delivery.admission.fair_executor import FairExecutor
from delivery.backlog import Backlog
from delivery.fanout import FanOut, Subscriber, live_update
from delivery.feeds.feed import Feed
from delivery.watchers import Watchers
from servioticy.domain.model import StreamKey, StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.cursors import Cursors, DurableSubscription
from servioticy.ports.emitted import EmittedPages
from servioticy.ports.history import History

STORE_SECONDS = 0.003
"""Those that move within it are stored together."""

PASS_OVER_SECONDS = 30.0
LOOK_SECONDS = 0.5
"""Between two looks for subscriptions that are new, changed or gone."""

RETRY_SECONDS = 1.0
SKEW_MS = 5_000
"""How far the clocks of API and pipeline may be apart."""

PAGE_UPDATES = 500
PAGE_BYTES = 256 * 1024

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
        self.is_owner = False
        """Whether this process delivers; of several, one does."""
        self._store = store
        self.pages = pages
        self._history = history
        self.fanout = fanout
        self._watchers = watchers
        self.backlog = backlog
        self._calls = calls
        self._receivers = receivers
        self._known: Mapping[str, int] = {}
        self._lent: dict[str, Feed] = {}
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._looked = asyncio.Event()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._moved: dict[str, Feed] = {}
        self._behind: dict[str, Feed] = {}
        self._has_moved = asyncio.Event()
        self._read_on = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        # One thread: the claim is its connection's.
        self._storing = ThreadPoolExecutor(1, "cursors")

    @property
    def behind(self) -> int:
        """How many feeds have something to read; may be asked from any thread."""
        return sum(not each.is_live for each in list(self.feeds.values()))

    def start(self) -> None:
        """Feed from now on. What is emitted must be read already (see FanOut.begin_at)."""
        works = (self._look, self._read, self._note, self._pass_over)
        self._tasks = [asyncio.create_task(_for_ever(each)) for each in works]

    async def stop(self) -> None:
        """Feed no more, and store how far all have got."""
        for task in (*self._tasks, *self._running.values(), *self._reading.values()):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._running.values(), return_exceptions=True)
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
        is_owner = await self._asked(self._store.claim)
        if is_owner != self.is_owner:
            self.is_owner = is_owner
            log.info("feeds_claimed" if is_owner else "feeds_lost")
        now = await self._asked(self._store.changes) if is_owner else {}
        for gone in self._known.keys() - now.keys():
            self._remove(gone)
        changed = [each for each, change in now.items() if self._known.get(each) != change]
        if changed:
            await self._store_cursors()
        found = await self._asked(partial(self._store.subscriptions, changed)) if changed else []
        for each in found:
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

    def _remove(self, subscription: str) -> None:
        feed = self.feeds.pop(subscription, None)
        if feed is None:
            return
        self._running.pop(subscription).cancel()
        self._forget(feed)

    def _forget(self, feed: Feed) -> None:
        id_ = feed.subscription.id
        for stream in feed.subscription.streams:
            self._watchers.remove(stream, feed)
        self._behind.pop(id_, None)
        self._moved.pop(id_, None)
        if id_ in self._reading:
            self._reading.pop(id_).cancel()
        self.backlog.remove(feed)

    def changed(self, feed: Feed) -> None:
        """Note that a feed may have to read on, or has something new to store."""
        id_ = feed.subscription.id
        if not self._has(feed):
            return
        if id_ not in self._lent:
            self._moved[id_] = feed
            self._has_moved.set()
        if feed.is_live or not feed.has_room:
            return
        if not feed.history:
            self._behind[id_] = feed
            self._read_on.set()
        elif id_ not in self._reading:
            self._reading[id_] = asyncio.create_task(self._read_history(feed))

    # What they read

    async def _read(self) -> None:
        """Read on once for all that are behind and have room."""
        await self._read_on.wait()
        self._read_on.clear()
        feeds = [each for each in self._behind.values() if each.has_room]
        self._behind = {}
        try:
            for feed in feeds:
                await self._begin(feed)
            for number in self.fanout.begun.next_offsets():
                await self._read_partition(number, feeds)
        except BaseException:
            self._behind |= {each.subscription.id: each for each in feeds if self._has(each)}
            self._read_on.set()
            raise
        for feed in feeds:
            if self._has(feed) and not feed.go_live() and feed.has_room:
                self.changed(feed)

    def _has(self, feed: Feed) -> bool:
        id_ = feed.subscription.id
        return (self.feeds.get(id_) or self._lent.get(id_)) is feed

    async def _begin(self, feed: Feed) -> None:
        """Fix where it begins, in the partitions where that is not known yet."""
        ends = self.fanout.begun.next_offsets()
        if all(feed.next_offset(number) is not None for number in ends):
            return
        if feed.history:
            feed.begin_at(ends)  # the history has all that was emitted before
        else:
            since = feed.subscription.created_ms - SKEW_MS
            feed.begin_at(await asyncio.to_thread(self.pages.offsets_at, since))
            feed.begin_at(ends)

    async def _read_history(self, feed: Feed) -> None:
        """Read the history for one feed while it has room: nobody else waits for that."""
        try:
            await self._begin(feed)
            for stream in list(feed.history):
                key = feed.subscription.streams.get(stream)
                while key is not None and feed.has_room and stream in feed.history:
                    if not await self._history_page(feed, stream, key):
                        break
                if key is None:
                    feed.end_history(stream)
        except Unavailable as error:
            log.warning("feeds_wait", extra={"why": str(error)})
            await asyncio.sleep(RETRY_SECONDS)
        except Exception:
            log.exception("feeds_failed")
            await asyncio.sleep(RETRY_SECONDS)
        if self._has(feed):
            del self._reading[feed.subscription.id]
            self.changed(feed)

    async def _history_page(self, feed: Feed, stream: StreamRef, key: StreamKey) -> bool:
        """Read a page; False where that was all."""
        after, drops = feed.history[stream], feed.drops
        read = partial(self._history.updates_after, key, after, PAGE_UPDATES, PAGE_BYTES)
        page = await self._calls.run(feed.tenant, read)
        if not self._has(feed) or feed.drops != drops:
            return False  # it stands elsewhere
        if page:
            feed.read_history(stream, page)
        else:
            feed.end_history(stream)
        return bool(page)

    async def _read_partition(self, number: int, feeds: Iterable[Feed]) -> None:
        """Read a partition up to where the fan-out stands, for those that have room so long."""
        while True:
            end = self.fanout.begun.next_offsets().get(number, 0)
            hungry = {
                each: at
                for each in feeds
                if self._has(each)
                and not each.history
                and each.has_room
                and (at := each.next_offset(number)) is not None
                and at < end
            }
            if not hungry:
                return
            start = min(hungry.values())
            drops = {each: each.drops for each in hungry}
            page = await asyncio.to_thread(self.pages.read, number, start, end)
            # Dropped meanwhile, it stands elsewhere.
            there = {each for each in hungry if self._has(each) and each.drops == drops[each]}
            by_stream = _by_stream(there)
            for record, position in page.records:
                found = by_stream.get(StreamRef(record.service_object, record.stream), ())
                wanting = [each for each in found if each in there]
                live = live_update(record, position) if wanting else None
                there -= {each for each in wanting if live and not each.read(live)}
            for feed in there:
                feed.read_up_to(number, page.next_offset)

    # How far they have got

    async def _note(self) -> None:
        """Store once what has moved."""
        await self._has_moved.wait()
        self._has_moved.clear()
        await asyncio.sleep(STORE_SECONDS)
        try:
            await self._store_cursors()
        except Unavailable:
            self._has_moved.set()
            raise

    async def _store_cursors(self) -> None:
        moved, self._moved = self._moved, {}
        cursors = {id_: each.stored() for id_, each in moved.items()}
        if not cursors:
            return
        try:
            await self._asked(partial(self._store.store, cursors))
        except BaseException:
            self._moved = moved | self._moved
            raise
        for id_, each in moved.items():
            each.note_stored(cursors[id_])

    async def _pass_over(self) -> None:
        """Let all for which nothing waits stand where the fan-out stands."""
        await asyncio.sleep(PASS_OVER_SECONDS)
        self._moved |= {id_: each for id_, each in self.feeds.items() if each.pass_over()}
        self._has_moved.set()


def _by_stream(feeds: Iterable[Feed]) -> Mapping[StreamRef, list[Feed]]:
    found: defaultdict[StreamRef, list[Feed]] = defaultdict(list)
    for feed in feeds:
        for stream in feed.subscription.streams:
            found[stream].append(feed)
    return found


async def _for_ever(work: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await work()
        except Unavailable as error:
            log.warning("feeds_wait", extra={"why": str(error)})
            await asyncio.sleep(RETRY_SECONDS)
        except Exception:
            log.exception("feeds_failed")
            await asyncio.sleep(RETRY_SECONDS)


async def _logged(receive: Awaitable[None], subscription: str) -> None:
    try:
        await receive
    except Exception:
        log.exception("receiver_failed", extra={"subscription": subscription})
