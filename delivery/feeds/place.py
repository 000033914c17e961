"""How far a feed has been acknowledged: what is stored of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from delivery.cursors import Cursor
from delivery.feeds.deliveries import Delivery
from servioticy.domain.model import StreamRef, Timestamp
from servioticy.domain.records import Position
from servioticy.ports.cursors import StoredCursor

OLDEST = -(2**63)
"""Before every timestamp."""


class Place:
    """A place in the topic, partition by partition, and in the history of streams.

    Histories come before what lies in the topic from the offsets `before` on: where that is
    acknowledged, all of them are.
    """

    def __init__(self, cursor: StoredCursor) -> None:
        self.offsets = Cursor(cursor.offsets)
        self.history: dict[StreamRef, Timestamp] = dict(cursor.history)
        self.newest = cursor.newest
        """The number of the newest stream that was known; None: it is about one stream."""
        self.since = cursor.since
        self._before = cursor.before

    def stored(self) -> StoredCursor:
        """Return it as it is stored."""
        offsets = self.offsets.next_offsets()
        return StoredCursor(offsets, dict(self.history), self.since, self._before, self.newest)

    def note(self, delivery: Delivery) -> None:
        """Note that this has been acknowledged, and all that came before it."""
        if delivery.position is not None:
            self.offsets.advance(delivery.position)
            if delivery.position.offset >= self._before.get(delivery.position.partition, 0):
                self.history = {}
        elif delivery.stream in self.history:
            self.history[delivery.stream] = delivery.update.timestamp

    def begin_histories(self, streams: Iterable[StreamRef], before: Mapping[int, int]) -> None:
        """Let the histories of these come before what lies in the topic from there on."""
        self.history |= dict.fromkeys(streams, OLDEST)
        self._before = before

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
        for partition, offset in ends.items():
            if not self.offsets.has_passed(Position(partition, offset - 1)):
                self.offsets.advance(Position(partition, offset - 1))

    def begin_at(self, partition: int, offset: int) -> None:
        """Fix where it begins in a partition, unless that is known."""
        if partition not in self.offsets.next_offsets():
            self.offsets.advance(Position(partition, offset - 1))
