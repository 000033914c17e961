"""Durable subscriptions whose clients come for their updates, by whatever transport.

What a client has got stays in its window until it is acknowledged, by the id of the last event:
then the cursor moves. What is not acknowledged comes again to whoever comes next.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from delivery.endings import Ending
from delivery.feeds.deliveries import Delivery, FeedEnded
from delivery.feeds.event_ids import EventId, digest, event_id
from delivery.feeds.feed import Feed
from delivery.feeds.feeds import Feeds
from servioticy.domain.model import LastUpdate, StreamRef

MAX_UNACKNOWLEDGED = 10_000
"""So many updates may a client get beyond what it has acknowledged."""


class UnknownEvent(Exception):
    """This is no place that the subscription has come to."""


class OtherLog(UnknownEvent):
    """This is a place in a topic that is gone: the platform was restored meanwhile."""


class Pull:
    """One subscription, and how much of it its client has got."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self._window: OrderedDict[EventId, Delivery] = OrderedDict()
        """What its client has got and not acknowledged, in order: by its id, as a client may
        acknowledge as often as it likes."""
        self._drops = feed.drops
        self._reader: Callable[[Ending], None] | None = None

    def attach(self, end: Callable[[Ending], None]) -> None:
        """Give what follows to this client only; what nobody has acknowledged comes again."""
        self.detach_all(Ending.REPLACED)
        self._reader = end
        if self._window:
            self._rewind()

    def detach(self, end: Callable[[Ending], None]) -> None:
        """Note that this client has gone."""
        if self._reader == end:
            self._reader = None
            self.feed.unsent_bytes = int

    def detach_all(self, ending: Ending) -> None:
        """End whoever gets the updates now."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader(ending)

    async def take(self) -> Delivery:
        """Return the next update. Raises FeedEnded where too much is not acknowledged."""
        self._check()
        return self._note(await self.feed.take())

    def take_now(self) -> Delivery | None:
        """Return the next update, if there is one now. Raises FeedEnded as `take` does."""
        if self.feed.waiting:
            self._check()
        delivery = self.feed.take_now()
        return None if delivery is None else self._note(delivery)

    def _check(self) -> None:
        if len(self._window) >= MAX_UNACKNOWLEDGED:
            raise FeedEnded(Ending.UNACKNOWLEDGED)

    def _note(self, delivery: Delivery) -> Delivery:
        self._note_drops()
        # Of what is sent nothing but its place is needed.
        place = LastUpdate(delivery.update.timestamp, b"")
        self._window[event_id(delivery, self.feed.log)] = Delivery(
            delivery.stream, place, delivery.position
        )
        return delivery

    def acknowledge(self, last: EventId) -> None:
        """Move the cursor behind this event. Raises UnknownEvent where it is none of the feed's,
        OtherLog where nobody can say any more what it was.

        An event that was acknowledged before is none to complain about.
        """
        if not last.is_of(self.feed.log):
            raise OtherLog
        self._note_drops()
        if last in self._window:
            # One by one only what is acknowledged: each is, once.
            id_ = None
            while id_ != last:
                id_ = next(iter(self._window))
                self.feed.done(self._window.pop(id_))
        elif (skipped := self._beyond(last)) is not None:
            # It was got from a process before this one: begin behind it.
            self.feed.done(skipped)
            self._rewind()

    def _beyond(self, last: EventId) -> Delivery | None:
        """Return the event as a delivery where the cursor has not come to it yet."""
        at = last.position
        if at is not None:
            if at.offset >= self.feed.ends().get(at.partition, 0):
                raise UnknownEvent
            place = Delivery(StreamRef("", ""), LastUpdate(last.timestamp, b""), at)
            return None if self.feed.place.offsets.has_passed(at) else place
        for stream, after in self.feed.place.history.items():
            if digest(stream) == last.stream and last.timestamp > after:
                return Delivery(stream, LastUpdate(last.timestamp, b""), None)
        return None

    def _note_drops(self) -> None:
        if self._drops != self.feed.drops:
            # All that is not acknowledged comes again.
            self._drops = self.feed.drops
            self._window.clear()

    def _rewind(self) -> None:
        self._window.clear()
        self.feed.rewind()
        self._drops = self.feed.drops


class Pulls:
    """Those of all subscriptions, by id."""

    def __init__(self) -> None:
        self._open: dict[str, Pull] = {}

    async def receive(self, feed: Feed) -> None:
        """Keep a feed for its client until cancelled."""
        id_, pull = feed.subscription.id, Pull(feed)
        self._open[id_] = pull
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            if self._open.get(id_) is pull:
                del self._open[id_]
            pull.detach_all(Ending.SUBSCRIPTION_CHANGED)

    async def find(self, id_: str, tenant: int, feeds: Feeds) -> Pull | None:
        """Return that of a tenant's subscription, which may just have been made; None: no such."""
        if id_ not in self._open:
            await feeds.looked()
            await asyncio.sleep(0)  # its receiver begins
        pull = self._open.get(id_)
        return pull if pull is not None and pull.feed.tenant == tenant else None
