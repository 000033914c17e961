"""The updates that one durable subscription still has to get, from its cursor on.

A feed is *live* while it has been offered everything up to where the fan-out stands, and had
room for it. Else it is *behind*: what is offered passes by, and is read from the topic, or from
the history, when there is room again. So the memory that a subscription takes is bounded,
however slowly its receiver takes what comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from delivery.admission.refusals import Refusal
from delivery.backlog import Backlog
from delivery.endings import Ending
from delivery.fanout import FanOut, LiveUpdate
from delivery.feeds.deliveries import Delivery, FeedEnded
from delivery.feeds.new_streams import NewStreams
from delivery.feeds.place import Place
from delivery.feeds.reached import Reached
from delivery.feeds.waiting import Waiting
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.ports.cursors import DurableSubscription, StoredCursor

MAX_QUEUED_BYTES = 1024 * 1024
"""More is read when half of it is free."""


class Feed:
    """Keeps what comes for one subscription until its receiver takes it, and acknowledges it.

    All methods belong to the event loop's thread. `changed` is called when the feed may have to
    read on, or has something new to store.
    """

    takes_later = True
    __slots__ = (
        "_backlog",
        "_changed",
        "_fanout",
        "_is_settled",
        "_max_bytes",
        "_new_streams",
        "_settling",
        "_taken",
        "_waiting",
        "drops",
        "ending",
        "is_live",
        "place",
        "reached",
        "subscription",
        "unsent_bytes",
    )

    def __init__(
        self,
        subscription: DurableSubscription,
        backlog: Backlog,
        fanout: FanOut,
        changed: Callable[[Feed], None],
        max_bytes: int = MAX_QUEUED_BYTES,
    ) -> None:
        self.subscription = subscription
        self.is_live = False
        self._backlog = backlog
        self._fanout = fanout
        self._changed = changed
        self._max_bytes = max_bytes
        self.place = Place(subscription.cursor)
        """How far it has been acknowledged."""
        self.reached = Reached(self.place)
        """How far it has been filled."""
        self._waiting = Waiting()
        self._taken = 0
        self.drops = 0
        """How often all that was kept had to go."""
        self.ending: Ending | None = None
        """Why nothing more comes, where that is so."""
        self.unsent_bytes: Callable[[], int] = int
        """How many bytes its receiver has taken, and still has to send."""
        self._is_settled = True
        self._settling: asyncio.Event | None = None
        self._new_streams = NewStreams(self.place)
        self._begin_new_streams()

    @property
    def tenant(self) -> int:
        """Whose memory it takes."""
        return self.subscription.tenant

    @property
    def log(self) -> str:
        """Return what the ids of its events name the topic by."""
        return self._fanout.log

    @property
    def has_room(self) -> bool:
        """Whether it is worth reading on for it: its receiver will take what is read."""
        goes_on = self.ending is None and not self._fanout.resting.has(self.tenant)
        return goes_on and self._waiting.bytes <= self._max_bytes // 2

    @property
    def waiting(self) -> int:
        """How many updates wait for the receiver."""
        return len(self._waiting)

    def kept_bytes(self) -> int:
        """Return how many bytes wait for the receiver."""
        return self._waiting.bytes + self.reached.bytes + self.unsent_bytes()

    def ends(self) -> Mapping[int, int]:
        """Return by partition the first place of the topic that cannot have been given yet."""
        return self._fanout.begun.next_offsets()

    # What comes

    def offer(self, live: LiveUpdate) -> None:
        """Keep a live update, or fall behind where there is no room for it."""
        if not self.is_live or self.reached.has_passed(live.position):
            return
        if self._waiting.bytes >= self._max_bytes:
            self.fall_behind()
        else:
            self._add(live)

    def read(self, live: LiveUpdate) -> bool:
        """Keep an update that was read from the topic; tell whether what follows may be read."""
        if self.reached.has_passed(live.position):
            return True
        if self._waiting.bytes >= self._max_bytes:
            return False
        drops = self.drops
        self._add(live)
        return self.drops == drops

    def read_history(self, stream: StreamRef, page: Iterable[LastUpdate]) -> None:
        """Keep what the history gave."""
        deliveries = [Delivery(stream, update, None) for update in page]
        for delivery in deliveries:
            self._waiting.put(delivery)
        self.reached.note_history(stream, deliveries)
        self._backlog.update(self)

    def end_history(self, stream: StreamRef) -> None:
        """Note that the history has given all of a stream: what follows is in the topic."""
        self.reached.history.pop(stream, None)
        self._note_history_end()
        self._changed(self)

    def be_about(self, subscription: DurableSubscription) -> None:
        """Give other streams from now on: what waits of those that are gone is not given.

        Streams that were made meanwhile are given from their beginning, and others that were
        not among them before from now on.
        """
        gone = self.subscription.streams.keys() - subscription.streams.keys()
        self.subscription = subscription
        if gone:
            self._waiting.forget(gone)
            self.place.forget(gone)
            for stream in gone:
                self.reached.history.pop(stream, None)
            self._note_history_end()
            self._backlog.update(self)
        self._begin_new_streams()
        self._changed(self)

    def _begin_new_streams(self) -> None:
        """Let the history of streams come first that came to be later."""
        new = self._new_streams.among(self.subscription)
        if new:
            self._stop_at_fanout()
            self.reached.begin_histories(new)
            # A client may have got anything up to there, and acknowledge it later.
            self.place.begin_histories(new, self.ends())

    def gives(self, stream: StreamRef) -> bool:
        """Return whether it is about this stream now."""
        return stream in self.subscription.streams

    @property
    def needs_topic(self) -> bool:
        """Whether something of what comes before the end of the topic is not in its history."""
        return bool(self.place.since) or not self.reached.history

    def begin_at(self, offsets: Mapping[int, int]) -> None:
        """Fix from where to read on, in every partition; what is known already stays."""
        for partition, offset in offsets.items():
            self.place.begin_at(partition, offset)
            self.reached.begin_at(partition, offset)
        self._changed(self)

    def go_live(self) -> bool:
        """Take what is offered from now on, if nothing lies between; tell whether it does."""
        self.is_live = self.ending is None and self.reached.has_all(self.ends())
        if self.is_live:
            self.reached.note_live()
        return self.is_live

    def fall_behind(self) -> None:
        """Take nothing that is offered from now on: it is read later."""
        self._stop_at_fanout()
        self._changed(self)

    def _stop_at_fanout(self) -> None:
        if self.is_live:
            # While it was live, everything up to here was kept or for others.
            self.reached.pass_up_to(self._fanout.cursor.next_offsets())
            self.is_live = False

    def drop(self) -> None:
        """Keep nothing: what is not acknowledged is read again."""
        self.drops += 1
        self._waiting.clear()
        self.reached.go_back(self.place)
        self.is_live = False
        # Not at once: the backlog is just adding up.
        asyncio.get_running_loop().call_soon(self._changed, self)

    def rewind(self) -> None:
        """Begin again behind what is acknowledged: whoever took more has gone."""
        self._taken = 0
        self.drop()

    def end(self, ending: Ending) -> None:
        """Give nothing any more, but what waits already."""
        self.ending = self.ending or ending
        self.is_live = False
        self._waiting.wake()

    def check_progress(self, now: float) -> None:
        """A feed may wait for its receiver as long as it takes."""

    def close(self, _ending: Ending) -> None:
        """An update could not be offered: read it again, when others have gone on."""
        self.fall_behind()

    # What goes

    def tell(self, woken: Callable[[], None]) -> None:
        """Call this whenever `take_now` may have something else to say than before."""
        self._waiting.tell = woken

    async def take(self) -> Delivery:
        """Return the next update as soon as there is one; it counts as delivered by `done`.

        Raises FeedEnded where none will come, or while its tenant may have no more.
        """
        while (delivery := self.take_now()) is None:
            await self._waiting.woken()
        return delivery

    def take_now(self) -> Delivery | None:
        """Return the next update, if there is one now. Raises FeedEnded as `take` does."""
        if not self._waiting:
            if self.ending is not None:
                raise FeedEnded(self.ending)
            return None
        if self._fanout.resting.has(self.tenant):
            raise FeedEnded(Ending.QUOTA_USED_UP)
        had_room = self.has_room
        delivery = self._waiting.pop()
        key = self.subscription.streams.get(delivery.stream)
        if key is not None:  # else it is not about that stream any more
            self._fanout.note(self.tenant, key.tenant, delivery.stream)
        self._taken += 1
        self._backlog.update(self)
        if not had_room and self.has_room:
            self._changed(self)
        return delivery

    async def take_patiently(self) -> Delivery:
        """Return the next update as soon as there is one, and its tenant may have it.

        Raises FeedEnded where none will come.
        """
        while True:
            await self.rested()
            try:
                return await self.take()
            except FeedEnded as ended:
                if ended.ending is not Ending.QUOTA_USED_UP:
                    raise

    async def rested(self) -> None:
        """Return when its tenant may have more: at once, where its quota is not used up."""
        await self._fanout.resting.over(self.tenant)

    def refusal(self) -> Refusal | None:
        """Return what its client is told while its tenant may have no more."""
        return self._fanout.resting.refusal(self.tenant)

    def done(self, delivery: Delivery) -> None:
        """Note that the receiver has got it, and all before it."""
        self._is_settled = False
        self._taken = max(0, self._taken - 1)
        self.place.note(delivery)
        self._note_history_end()
        self._changed(self)

    async def settled(self) -> None:
        """Return when all that is done is stored: it does not come again."""
        while not self._is_settled:
            self._settling = self._settling or asyncio.Event()
            self._settling.clear()
            await self._settling.wait()

    def note_stored(self, cursor: StoredCursor) -> None:
        """Note that this is stored of it."""
        if cursor == self.place.stored():
            self._is_settled = True
            if self._settling is not None:
                self._settling.set()

    def pass_over(self) -> bool:
        """Where nothing waits for it: note that it needs nothing from before where it stands."""
        if self._waiting or self._taken or not self.is_live:
            return False
        self.place.pass_over(self._fanout.cursor.next_offsets())
        return True

    def _note_history_end(self) -> None:
        if not self.reached.history and not self._waiting and not self._taken:
            self.place.history = {}

    def _add(self, live: LiveUpdate) -> None:
        """Keep it, unless it is a repeat or follows from too early a record."""
        delivery = Delivery(live.stream, live.update, live.position, live.version, live.trace)
        since = self.place.since.get(live.position.partition, 0)
        is_new = self.reached.note(delivery)
        if is_new and (live.origin is None or live.origin >= since):
            self._waiting.put(delivery)
            self._backlog.update(self)  # last, as it may drop all of it
