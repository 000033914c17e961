"""How far a feed has been filled: what comes before waits for its receiver, or was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delivery.cursors import Cursor
from delivery.feeds.deliveries import Delivery
from delivery.feeds.place import OLDEST, Place
from delivery.repeats import Repeats
from servioticy.domain.model import StreamRef, Timestamp
from servioticy.domain.records import Position

ID_BYTES = 100
"""It takes so much to remember one update that the history gave."""


class Reached:
    """A place in the topic, partition by partition, and in the history of streams.

    It is ahead of the feed's `Place` by what is not acknowledged yet.
    """

    __slots__ = ("_offsets", "_repeats", "history")

    def __init__(self, place: Place) -> None:
        self.history: dict[StreamRef, Timestamp]
        """Of each of these streams, the history from after this timestamp on comes first."""
        self._offsets: Cursor
        self._repeats: Repeats[str] = Repeats(ID_BYTES)
        self.go_back(place)

    @property
    def bytes(self) -> int:
        """Return what it takes to know what the topic will give once more."""
        return self._repeats.bytes

    def go_back(self, place: Place) -> None:
        """Stand where that is: what follows comes again."""
        self._offsets = Cursor(place.offsets.next_offsets())
        self.history = dict(place.history)
        self._repeats.clear()

    def begin_at(self, partition: int, offset: int) -> None:
        """Fix from where to read a partition on; what is known already stays."""
        self._offsets.begin_at(partition, offset)

    def begin_histories(self, streams: Mapping[StreamRef, int]) -> None:
        """Let the histories of these come first."""
        self.history |= dict.fromkeys(streams, OLDEST)

    def next_offset(self, partition: int) -> int | None:
        """Return from where to read the partition on; None where that is not fixed yet."""
        return self._offsets.next_offset(partition)

    def has_passed(self, position: Position) -> bool:
        """Return whether that place of the topic has been kept for the receiver, or passed."""
        return self._offsets.has_passed(position)

    def has_all(self, ends: Mapping[int, int]) -> bool:
        """Return whether nothing lies between it and these offsets."""
        at = self._offsets.next_offsets()
        return not self.history and all(at.get(n, 0) >= end for n, end in ends.items())

    def pass_up_to(self, offsets: Mapping[int, int]) -> None:
        """Note that these partitions have been read so far: nothing before is for this feed."""
        self._offsets.pass_up_to(offsets)

    def note(self, delivery: Delivery) -> bool:
        """Note an update of the topic; False: the history has given it already."""
        if delivery.position is not None:
            self._offsets.advance(delivery.position)
        # An id is only made where there is something to compare it with.
        return not (self._repeats.bytes and self._repeats.has(delivery.id))

    def note_history(self, stream: StreamRef, deliveries: Sequence[Delivery]) -> None:
        """Note what the history gave."""
        for delivery in deliveries:
            self.history[stream] = delivery.update.timestamp
        self._repeats.note(delivery.id for delivery in deliveries)

    def note_live(self) -> None:
        """Note that what follows is emitted now: soon nothing of it can be a repeat."""
        self._repeats.clear_later()
