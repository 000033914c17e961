"""Feeds of clients that watch a stream for as long as they are connected.

Nothing of them is stored: their clients know, by the id of the last event, where to go on. So a
client that comes again gets what it missed from the topic; only where the topic does not reach
back so far, or that would be very much to read, from the history.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable

from delivery.admission.requests import Admission
from delivery.admission.sources import SourceAdmission
from delivery.endings import Ending
from delivery.fanout import LiveUpdate
from delivery.feeds.event_ids import EventId
from delivery.feeds.feed import Feed
from delivery.feeds.feeds import Feeds
from delivery.feeds.place import OLDEST
from servioticy.domain.model import Timestamp
from servioticy.domain.records import Position
from servioticy.ports.cursors import About, DurableSubscription, StoredCursor

MAX_REREAD = 50_000
"""So many records of the topic are read again for a client; else the history is asked."""

_numbers = itertools.count()


class LentFeed(Feed):
    """A feed that ends where it cannot go on: its client comes again.

    It holds at most what its queue holds, and costs no reading for a client that is slow.
    """

    __slots__ = ("version",)

    def __init__(
        self, subscription: DurableSubscription, feeds: Feeds, version: int | None = None
    ) -> None:
        """`version`: of another tenant's stream, that of the document by which it may be read."""
        self.version = version
        super().__init__(subscription, feeds.backlog, feeds.fanout, feeds.changed)

    def offer(self, live: LiveUpdate) -> None:
        """Keep a live update, unless it may be private by now."""
        if self.version is None or live.version == self.version:
            super().offer(live)
        elif self.is_live:
            self.end(Ending.DOCUMENT_CHANGED)

    def read(self, live: LiveUpdate) -> bool:
        """Keep an update of the topic, unless it may be private by now."""
        is_readable = self.version is None or live.version == self.version
        if is_readable or self.reached.has_passed(live.position):
            return super().read(live)
        self.end(Ending.DOCUMENT_CHANGED)
        return False

    def fall_behind(self) -> None:
        """End where the client is slow: it comes again and goes on where it was.

        One that has taken all that was written is not: more came at once than there is room for.
        """
        if self.is_live and self.unsent_bytes():
            self.end(Ending.READS_TOO_SLOWLY)
        else:
            super().fall_behind()

    def drop(self) -> None:
        """Keep nothing, and end."""
        super().drop()
        self.end(Ending.OVER_BUDGET)

    def close(self, ending: Ending) -> None:
        """End, as an update could not be offered."""
        self.end(ending)


Newest = Callable[[Admission], Awaitable[Timestamp | None]]
"""Tells the largest timestamp that is stored of a stream. May raise Unavailable."""


async def lend(
    feeds: Feeds, admission: Admission, last: EventId | None, newest: Newest
) -> tuple[LentFeed, EventId | None]:
    """Begin to feed a client from after its last event, a timestamp, or now.

    An event of another topic, as before the platform was restored, stands for its timestamp.
    Also returns where it stands, so that one that is cut off before its first event can go on;
    None where that is not known. Raises Unavailable.
    """
    begins = last
    if last is None and admission.after is None:
        timestamp = await newest(admission)
        # Where that takes long others go on: it begins at what is now, of which nobody has to be
        # asked, and not at what was when it came.
        at = _now(feeds, admission.partition)
        timestamp = OLDEST if timestamp is None else timestamp
        begins = last = EventId(at, None, timestamp, feeds.fanout.log)
    cursor = await _cursor(feeds, admission, last)
    subscription = DurableSubscription(
        f"lent-{next(_numbers)}",
        admission.tenant,
        {admission.stream: admission.key},
        "",
        b"",
        0,
        cursor,
    )
    feed = LentFeed(subscription, feeds, admission.version if admission.foreign else None)
    feeds.lend(feed)
    return feed, begins


def lend_source(feeds: Feeds, admission: SourceAdmission, about: About) -> LentFeed:
    """Begin to feed a client with what a source has, from now on."""
    cursor = StoredCursor(feeds.fanout.begun.next_offsets(), newest=about.newest)
    subscription = DurableSubscription(
        f"lent-{next(_numbers)}",
        admission.tenant,
        about.streams,
        "",
        b"",
        0,
        cursor,
        source=admission.source,
        newest=about.newest,
    )
    feed = LentFeed(subscription, feeds)
    feeds.lend(feed)
    return feed


def _now(feeds: Feeds, partition: int) -> Position:
    return Position(partition, feeds.fanout.begun.next_offsets().get(partition, 0) - 1)


async def _cursor(feeds: Feeds, admission: Admission, last: EventId | None) -> StoredCursor:
    after = admission.after if last is None else last.timestamp
    at = last.position if last is not None and last.is_of(feeds.fanout.log) else None
    if at == _now(feeds, admission.partition):
        return StoredCursor(feeds.fanout.begun.next_offsets())
    if at is not None and _is_near(feeds, admission, at):
        begins = await feeds.beginnings.of(at.partition)
        if begins <= at.offset + 1:
            return StoredCursor(feeds.fanout.begun.next_offsets() | {at.partition: at.offset + 1})
    ends = feeds.fanout.begun.next_offsets()
    return StoredCursor(ends, {} if after is None else {admission.stream: after})


def _is_near(feeds: Feeds, admission: Admission, at: Position) -> bool:
    """Return whether what followed is in the stream's partition of the topic, and not too much.

    A client may say any place: one that the topic does not have is not asked about. A stream
    that has moved is in two partitions, and the history has it in one piece.
    """
    end = feeds.fanout.begun.next_offsets().get(at.partition, 0)
    return at.partition == admission.partition and end - MAX_REREAD <= at.offset + 1 <= end
