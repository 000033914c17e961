"""How far a feed has been acknowledged: what is stored of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from delivery.cursors import Cursor
from delivery.feeds.deliveries import Delivery
from servioticy.domain.model import StreamRef, Timestamp
from servioticy.ports.cursors import StoredCursor

OLDEST = -(2**63)
"""Before every timestamp."""


class Place:
    """A place in the topic, partition by partition, and in the history of streams.

    Histories come before what lies in the topic from the offsets `before` on: where that is
    acknowledged, all of them are.
    """

    __slots__ = ("_before", "begun", "history", "newest", "offsets", "since")

    def __init__(self, cursor: StoredCursor) -> None:
        self.offsets = Cursor(cursor.offsets)
        self.history: dict[StreamRef, Timestamp] = dict(cursor.history)
        self.newest = cursor.newest
        """Streams with larger numbers came to be later; None: it is about one stream."""
        self.begun = cursor.begun
        """Of these, whose history has been begun."""
        self.since = cursor.since
        self._before = cursor.before

    def stored(self) -> StoredCursor:
        """Return it as it is stored."""
        offsets = self.offsets.next_offsets()
        return StoredCursor(
            offsets, dict(self.history), self.since, self._before, self.newest, self.begun
        )

    def note(self, delivery: Delivery) -> None:
        """Note that this has been acknowledged, and all that came before it."""
        if delivery.position is not None:
            self.offsets.advance(delivery.position)
            if delivery.position.offset >= self._before.get(delivery.position.partition, 0):
                self.history = {}
        elif delivery.stream in self.history:
            self.history[delivery.stream] = delivery.update.timestamp

    def is_new(self, number: int) -> bool:
        """Return whether the stream of this number came to be later, and has not been begun."""
        return self.newest is not None and number > self.newest and number not in self.begun

    def begin_histories(self, streams: Mapping[StreamRef, int], before: Mapping[int, int]) -> None:
        """Let the histories of these come before what lies in the topic from there on."""
        self.history |= dict.fromkeys(streams, OLDEST)
        self.begun |= set(streams.values())
        self._before = before

    def grow_old(self, newest: int) -> None:
        """Let streams up to this number be as if they had been there before."""
        self.newest = max(newest, self.newest or 0)
        self.begun = frozenset(each for each in self.begun if each > newest)

    def forget(self, streams: Collection[StreamRef]) -> None:
        """Let it not be about these any more."""
        for stream in streams:
            self.history.pop(stream, None)

    def lag(self, ends: Mapping[int, int]) -> int:
        """Return how many records of the topic, of whatever stream, are not passed yet."""
        here = self.offsets.next_offsets()
        return sum(max(0, end - here.get(partition, end)) for partition, end in ends.items())

    def pass_over(self, ends: Mapping[int, int]) -> None:
        """Note that nothing before these offsets is needed."""
        self.offsets.pass_up_to(ends)

    def begin_at(self, partition: int, offset: int) -> None:
        """Fix where it begins in a partition, unless that is known."""
        self.offsets.begin_at(partition, offset)
