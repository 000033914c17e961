"""What feeds that are behind read: the history each for itself, the topic once for all of them."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial

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
        self._behind: dict[str, Feed] = {}
        self._read_on = asyncio.Event()
        self._reading: dict[str, asyncio.Task[None]] = {}

    def want(self, feed: Feed) -> None:
        """Read on for a feed, as soon as it is its turn."""
        id_ = feed.subscription.id
        if not feed.reached.history:
            self._behind[id_] = feed
            self._read_on.set()
        elif id_ not in self._reading:
            self._reading[id_] = asyncio.create_task(self._read_history(feed))

    def forget(self, feed: Feed) -> None:
        """Read nothing for it any more."""
        id_ = feed.subscription.id
        self._behind.pop(id_, None)
        if id_ in self._reading:
            self._reading.pop(id_).cancel()

    async def stop(self) -> None:
        """End what is being read for single feeds."""
        tasks = list(self._reading.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def read(self) -> None:
        """Read on once for all that are behind and have room."""
        await self._read_on.wait()
        self._read_on.clear()
        feeds = [each for each in self._behind.values() if each.has_room]
        self._behind = {}
        try:
            await self._begin(feeds)
            for number in self._fanout.begun.next_offsets():
                await self._read_partition(number, feeds)
        except BaseException:
            self._behind |= {each.subscription.id: each for each in feeds if self._has(each)}
            self._read_on.set()
            raise
        for feed in feeds:
            if self._has(feed) and not feed.go_live() and feed.has_room:
                self._changed(feed)

    async def _begin(self, feeds: Iterable[Feed]) -> None:
        """Fix where they begin where that is not known yet; the topic is asked once for all."""
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

    async def _read_partition(self, number: int, feeds: Iterable[Feed]) -> None:
        """Read a partition up to where the fan-out stands, for those that have room so long."""
        while True:
            end = self._fanout.begun.next_offsets().get(number, 0)
            hungry = {
                each: at
                for each in feeds
                if self._has(each)
                and not each.reached.history
                and each.has_room
                and (at := each.reached.next_offset(number)) is not None
                and at < end
            }
            if not hungry:
                return
            start = min(hungry.values())
            drops = {each: each.drops for each in hungry}
            page = await asyncio.to_thread(self._pages.read, number, start, end)
            # Dropped meanwhile, it stands elsewhere; or the history of a new stream comes first.
            there = {
                each
                for each in hungry
                if self._has(each) and each.drops == drops[each] and not each.reached.history
            }
            by_stream = _by_stream(there)
            for record, position in page.records:
                found = by_stream.get(StreamRef(record.service_object, record.stream), ())
                wanting = [each for each in found if each in there]
                live = live_update(record, position) if wanting else None
                there -= {each for each in wanting if live and not each.read(live)}
            for feed in there:
                feed.reached.pass_up_to({number: page.next_offset})


def _by_stream(feeds: Iterable[Feed]) -> Mapping[StreamRef, list[Feed]]:
    found: defaultdict[StreamRef, list[Feed]] = defaultdict(list)
    for feed in feeds:
        for stream in feed.subscription.streams:
            found[stream].append(feed)
    return found
