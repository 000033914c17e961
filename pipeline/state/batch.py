"""The state of every stream through one batch, as if updates were taken one at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from pipeline.steps import NewUpdate, NewUpdates, Place, Verdict
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.timing import becomes_last


class BatchState:
    """What one batch has made so far: updates, verdicts, and each stream's last updates.

    The stages read it; only `process` adds to it, with what the stages return.
    """

    def __init__(self, last_updates: Mapping[StreamRef, LastUpdate | None]) -> None:
        """Begin with the last updates that were stored before the batch."""
        self._before = last_updates
        self._timelines: dict[StreamRef, Timeline] = {}
        self._new: list[NewUpdate] = []
        self._endings: dict[tuple[StreamRef, str], Ending] = {}

    def add(self, new: NewUpdates) -> None:
        """Note new updates: each is its stream's last one from its place on, if not older.

        Whatever is added of one stream comes in order of place.
        """
        for stream, updates in new.items():
            self._new += updates
            self.timeline(stream).extend(updates)

    def end(self, verdicts: Iterable[Verdict]) -> None:
        """Note how computations ended."""
        for each in verdicts:
            key = (each.composite, each.kind)
            ending = self._endings.get(key)
            if ending is None:
                self._endings[key] = Ending(each, each.times)
            else:
                ending.times += each.times
                if each.place > ending.last.place:
                    ending.last = each

    @property
    def endings(self) -> Iterable[Ending]:
        """How computations ended: one of each composite and kind of verdict."""
        return self._endings.values()

    def timeline(self, stream: StreamRef) -> Timeline:
        """The last updates of a stream through the batch."""
        timeline = self._timelines.get(stream)
        if timeline is None:
            timeline = self._timelines[stream] = Timeline(self._before.get(stream))
        return timeline

    def last_at(self, stream: StreamRef, place: Place) -> LastUpdate | None:
        """The stream's last update as it stood just before this place."""
        timeline = self._timelines.get(stream)
        return timeline.at(place) if timeline else self._before.get(stream)

    @property
    def new_updates(self) -> list[NewUpdate]:
        """All updates to store, in the serial order.

        They are sorted tree by tree: comparing places only within their own tree is a third
        of the work.
        """
        trees: dict[int, list[NewUpdate]] = {}
        for each in self._new:
            trees.setdefault(each[0][0], []).append(each)
        return [each for offset in sorted(trees) for each in sorted(trees[offset], key=_place)]

    @property
    def repeating(self) -> set[StreamRef]:
        """Streams with an update that is not newer than their last one was at its place."""
        return {ref for ref, timeline in self._timelines.items() if timeline.repeats}

    def last_updates(self) -> dict[StreamRef, LastUpdate]:
        """The last updates that this batch changed, as they are after it."""
        return {
            ref: timeline.newest
            for ref, timeline in self._timelines.items()
            if timeline.newest is not None and timeline.changed
        }


@dataclass(slots=True)
class Ending:
    """The last verdict of one composite and kind, and how many there were in all."""

    last: Verdict
    times: int


class Timeline:
    """The last updates of one stream, one after the other through a batch."""

    __slots__ = ("_before", "_last_updates", "_places", "repeats")

    def __init__(self, before: LastUpdate | None) -> None:
        self._before = before
        self._places: list[Place] = []
        self._last_updates: list[LastUpdate] = []
        self.repeats = False
        """Whether an update came that was not newer than the last one."""

    @property
    def changed(self) -> bool:
        """Whether the batch has put another last update in place."""
        return bool(self._last_updates)

    @property
    def newest(self) -> LastUpdate | None:
        """The stream's last update after all that has been added."""
        return self._last_updates[-1] if self._last_updates else self._before

    def extend(self, new: Sequence[NewUpdate]) -> None:
        """Add updates in order of place; each becomes the last one if it is not older."""
        newest = self.newest
        for place, (_origin, timestamp, document), uses in new:
            # What is written directly was made of nothing here: the uses stay.
            used = uses if newest is None else uses or newest.state
            if newest is not None and timestamp <= newest.timestamp:
                self.repeats = True
                if not becomes_last(timestamp, newest.timestamp):
                    continue
            newest = LastUpdate(timestamp, document, used)
            self._places.append(place)
            self._last_updates.append(newest)

    def at(self, place: Place) -> LastUpdate | None:
        """The last update as it stood just before this place."""
        index = bisect_left(self._places, place)
        return self._last_updates[index - 1] if index else self._before


_place = itemgetter(0)
