"""What feeds that are behind read: the history each for itself, the topic together.

The topic is read for one tenant after the other, a few pages each time: whoever wants very much
of it, from its beginning, holds up nobody who wants a little of its end. Feeds of others that
stand within such a page are filled with it, too: after a restart it is read once for all.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice

from delivery.admission.fair_executor import FairExecutor
from delivery.fanout import FanOut, live_update
from delivery.feeds.feed import Feed
from servioticy.domain.model import StreamKey, StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.emitted import EmittedPages
from servioticy.ports.history import History

RETRY_SECONDS = 1.0
SKEW_MS = 5_000
"""How far the clocks of API and pipeline may be apart."""

PAGES_A_TURN = 4
MOST_TOGETHER = 1_000
"""Feeds of one tenant that are filled in one turn; and of all others with them."""
RECORDS_AT_ONCE = 64
"""Of a page, before the loop is others'."""
PAGE_UPDATES = 500
PAGE_BYTES = 256 * 1024

log = logging.getLogger("servioticy.delivery")


class Rereading:
    """Reads for feeds that want it, while they have room.

    All methods belong to the event loop's thread. `has` tells whether a feed is still wanted,
    `changed` hears of one that may have to read on.
    """

    def __init__(
        self,
        pages: EmittedPages,
        history: History,
        fanout: FanOut,
        calls: FairExecutor,
        has: Callable[[Feed], bool],
        changed: Callable[[Feed], None],
    ) -> None:
        self._pages = pages
        self._history = history
        self._fanout = fanout
        self._calls = calls
        self._has = has
        self._changed = changed
        self._behind: OrderedDict[int, dict[str, Feed]] = OrderedDict()
        """By tenant, whoever is next first."""
        self._read_on = asyncio.Event()
        self._reading: dict[str, asyncio.Task[None]] = {}

    def want(self, feed: Feed) -> None:
        """Read on for a feed, as soon as it is its turn."""
        id_ = feed.subscription.id
        if not feed.reached.history:
            self._behind.setdefault(feed.tenant, {})[id_] = feed
            self._read_on.set()
        elif id_ not in self._reading:
            self._reading[id_] = asyncio.create_task(self._read_history(feed))

    def forget(self, feed: Feed) -> None:
        """Read nothing for it any more."""
        id_ = feed.subscription.id
        self._leave(feed)
        if id_ in self._reading:
            self._reading.pop(id_).cancel()

    async def stop(self) -> None:
        """End what is being read for single feeds."""
        tasks = list(self._reading.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def read(self) -> None:
        """Read on for the tenant whose turn it is, for those of its feeds that have room."""
        await self._read_on.wait()
        await asyncio.sleep(0)  # whatever comes of a turn, others go on after it
        if not self._behind:
            self._read_on.clear()
            return
        tenant, own = self._behind.popitem(last=False)
        self._behind[tenant] = own  # behind all the others
        feeds = list(islice(own.values(), MOST_TOGETHER))
        for each in feeds:
            # Behind its tenant's others; and out, where it is not to be read for now.
            self._leave(each)
            if each.has_room and not each.reached.history:
                self._behind.setdefault(tenant, {})[each.subscription.id] = each
        await self._begin(feeds)
        for _ in range(PAGES_A_TURN):
            if not await self._read_page(feeds):
                break
        for feed in feeds:
            self._settle(feed)

    def _leave(self, feed: Feed) -> None:
        own = self._behind.get(feed.tenant, {})
        own.pop(feed.subscription.id, None)
        if not own:
            self._behind.pop(feed.tenant, None)

    def _settle(self, feed: Feed) -> None:
        """Let it be live where it has all, and read on where it has not and has room."""
        if not self._has(feed):
            return
        if feed.is_live or feed.go_live() or not feed.has_room:
            self._leave(feed)
        else:
            self._changed(feed)

    async def _begin(self, feeds: Iterable[Feed]) -> None:
        """Fix where they begin where that is not known yet; the topic is asked once for all."""
        # First: what is emitted while the topic is asked lies behind these ends.
        ends, starts = self._fanout.begun.next_offsets(), dict[int, int]()
        new = [
            each
            for each in feeds
            if any(each.reached.next_offset(number) is None for number in ends)
        ]
        # The history has all that was emitted before.
        if since := [each.subscription.created_ms for each in new if each.needs_topic]:
            starts = await asyncio.to_thread(self._pages.offsets_at, min(since) - SKEW_MS)
        for feed in new:
            feed.begin_at(starts if feed.needs_topic else {})
            feed.begin_at(ends)

    async def _read_history(self, feed: Feed) -> None:
        """Read the history for one feed while it has room: nobody else waits for that."""
        try:
            await self._begin([feed])
            for stream in list(feed.reached.history):
                key = feed.subscription.streams.get(stream)
                while key is not None and feed.has_room and stream in feed.reached.history:
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
            self._changed(feed)

    async def _history_page(self, feed: Feed, stream: StreamRef, key: StreamKey) -> bool:
        """Read a page; False where that was all."""
        after, drops = feed.reached.history[stream], feed.drops
        read = partial(self._history.updates_after, key, after, PAGE_UPDATES, PAGE_BYTES)
        page = await self._calls.run(feed.tenant, read)
        if not self._has(feed) or feed.drops != drops or stream not in feed.reached.history:
            return False  # it stands elsewhere, or is not about this stream any more
        if page:
            feed.read_history(stream, page)
        else:
            feed.end_history(stream)
        return bool(page)

    async def _read_page(self, feeds: Sequence[Feed]) -> bool:
        """Read a page for those that are behind in some partition, from the lowest place at which
        one of them stands; False where there is none."""
        for number, end in self._fanout.begun.next_offsets().items():
            hungry = self._hungry(feeds, number, end)
            if hungry:
                start = min(hungry.values())
                others = {
                    each: at
                    for each, at in self._hungry(self._others(feeds), number, end).items()
                    if at >= start
                }
                await self._fill(hungry.keys() | others.keys(), number, start, end)
                for each in others:
                    self._settle(each)
                return True
        return False

    def _others(self, feeds: Sequence[Feed]) -> Iterator[Feed]:
        """Yield some of other tenants that are behind."""
        tenant = feeds[0].tenant if feeds else None
        each = MOST_TOGETHER // max(1, len(self._behind))
        own = [
            islice(theirs.values(), each + 1)
            for other, theirs in islice(self._behind.items(), MOST_TOGETHER)
            if other != tenant
        ]
        return chain.from_iterable(own)

    def _hungry(self, feeds: Iterable[Feed], number: int, end: int) -> dict[Feed, int]:
        """Return where those stand that want more of a partition, and have room for it."""
        return {
            each: at
            for each in feeds
            if self._has(each)
            and not each.is_live
            and not each.reached.history
            and each.has_room
            and (at := each.reached.next_offset(number)) is not None
            and at < end
        }

    async def _fill(self, feeds: Collection[Feed], number: int, start: int, end: int) -> None:
        """Read a page, and keep for each what is for it, as long as it has room."""
        drops = {each: each.drops for each in feeds}
        page = await asyncio.to_thread(self._pages.read, number, start, end)
        # Dropped meanwhile, it stands elsewhere; or the history of a new stream comes first.
        there = {each for each in feeds if self._stands(each, drops)}
        by_stream = _by_stream(there)
        for count, (record, position) in enumerate(page.records):
            if count % RECORDS_AT_ONCE == RECORDS_AT_ONCE - 1:
                await asyncio.sleep(0)
                there = {each for each in there if self._stands(each, drops)}
            found = by_stream.get(StreamRef(record.service_object, record.stream), ())
            wanting = [each for each in found if each in there]
            live = live_update(record, position) if wanting else None
            there -= {each for each in wanting if live and not each.read(live)}
        for feed in there:
            feed.reached.pass_up_to({number: page.next_offset})

    def _stands(self, feed: Feed, drops: Mapping[Feed, int]) -> bool:
        """Return whether it still stands where it did, and waits for a page."""
        is_same = self._has(feed) and feed.drops == drops[feed]
        return is_same and not feed.is_live and not feed.reached.history


def _by_stream(feeds: Iterable[Feed]) -> Mapping[StreamRef, list[Feed]]:
    found: defaultdict[StreamRef, list[Feed]] = defaultdict(list)
    for feed in feeds:
        for stream in feed.subscription.streams:
            found[stream].append(feed)
    return found
