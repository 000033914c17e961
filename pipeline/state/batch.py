"""What happens in one batch, as if updates were taken one at a time.

A *place* is a moment of that serial order: the offset of the source update in the log,
the depth in its execution tree, and the path through it (for each hop, which of the
subscribers it was). Places compare as breadth first goes, whatever the scripts decide,
so composites can be evaluated one after the other, each for the whole batch: an input
is read as it stood at the reader's place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from servioticy.domain.model import LastUpdate, SensorUpdate, StreamRef, Timestamp
from servioticy.domain.timing import becomes_last


class Place(NamedTuple):
    """A moment of the serial order; compares by offset, depth, path."""

    offset: int
    depth: int = 0
    path: tuple[int, ...] = ()


class NewUpdate(NamedTuple):
    """An update that this batch stores, and when; raw at depth 0, else derived."""

    place: Place
    update: SensorUpdate


class Verdict(NamedTuple):
    """How one computation ended."""

    place: Place
    composite: StreamRef
    kind: str
    trigger: SensorUpdate
    message: str = ""
    inputs: Sequence[Timestamp | None] = ()
    """Of each input it had, the timestamp; None where there was no update yet."""


class Ending(NamedTuple):
    """How often a composite's computations ended with one verdict, and the last of them."""

    times: int
    last: Verdict


class BatchState:
    """The updates of one batch, their order, and every stream's last update at any place."""

    def __init__(self, last_updates: Mapping[StreamRef, LastUpdate | None]) -> None:
        self._last_updates = last_updates
        self._timelines: dict[StreamRef, Timeline] = {}
        self._made: list[NewUpdate] = []
        self.endings: dict[tuple[StreamRef, str], Ending] = {}
        """by composite and verdict: how often, and the last of them"""

    def keep(self, made: NewUpdate, uses: Mapping[str, Timestamp] | None = None) -> None:
        """Note an update of a stream; those of one stream come in order of place."""
        self._made.append(made)
        self.assign(made, uses)

    def keep_later(self, made: Iterable[NewUpdate]) -> None:
        """Note updates, and leave it to `assign` when each becomes its stream's last."""
        self._made += made

    def assign(self, made: NewUpdate, uses: Mapping[str, Timestamp] | None = None) -> None:
        """From its place on, it is the last update of its stream, if not older."""
        self.timeline(made.update.origin).add(made, uses)

    def timeline(self, stream: StreamRef) -> Timeline:
        """The last updates of a stream, for who has many to add."""
        timeline = self._timelines.get(stream)
        if timeline is None:
            timeline = self._timelines[stream] = Timeline(self._last_updates.get(stream))
        return timeline

    def end(self, verdict: Verdict, times: int = 1) -> None:
        """Note how computations ended: so many times so, this being the last of them."""
        key = (verdict.composite, verdict.kind)
        before = self.endings.get(key)
        if before is None:
            self.endings[key] = Ending(times, verdict)
        else:
            last = max(before.last, verdict, key=lambda each: each.place)
            self.endings[key] = Ending(before.times + times, last)

    def last_at(self, stream: StreamRef, place: Place) -> LastUpdate | None:
        """The stream's last update as it stood just before this place."""
        timeline = self._timelines.get(stream)
        return timeline.at(place) if timeline else self._last_updates.get(stream)

    @property
    def made(self) -> list[NewUpdate]:
        """Everything to store, in the serial order.

        Tree by tree: comparing places only within their own is a third of the work.
        """
        trees: dict[int, list[NewUpdate]] = {}
        for each in self._made:
            trees.setdefault(each[0][0], []).append(each)
        place = itemgetter(0)
        return [each for offset in sorted(trees) for each in sorted(trees[offset], key=place)]

    @property
    def repeats(self) -> bool:
        """Whether an update from outside is not newer than its stream's last one was."""
        return any(each.repeats for each in self._timelines.values())

    def last_updates(self) -> dict[StreamRef, LastUpdate]:
        """The last updates that this batch changed."""
        return {
            ref: timeline.newest
            for ref, timeline in self._timelines.items()
            if timeline.newest is not None and timeline.changed
        }


class Timeline:
    """The last updates of one stream through a batch."""

    __slots__ = ("_before", "_last_updates", "_places", "repeats")

    def __init__(self, before: LastUpdate | None) -> None:
        self._before = before
        self._places: list[Place] = []
        self._last_updates: list[LastUpdate] = []
        self.repeats = False

    @property
    def changed(self) -> bool:
        """Whether the batch has any."""
        return bool(self._last_updates)

    @property
    def newest(self) -> LastUpdate | None:
        """The last of all."""
        return self._last_updates[-1] if self._last_updates else self._before

    def add(self, made: NewUpdate, uses: Mapping[str, Timestamp] | None = None) -> None:
        """The next update in order of place; it becomes the last one if not older."""
        place, (_origin, timestamp, document) = made
        newest = self._last_updates[-1] if self._last_updates else self._before
        if newest is None:
            becomes, kept = True, None
        else:
            becomes, kept = becomes_last(timestamp, newest.timestamp), newest.uses
            self.repeats = self.repeats or timestamp <= newest.timestamp
        if becomes:
            self._places.append(place)
            # What is put from outside was made of nothing here: the uses stay.
            self._last_updates.append(LastUpdate(timestamp, document, uses or kept))

    def at(self, place: Place) -> LastUpdate | None:
        """As it stood just before this place."""
        index = bisect_left(self._places, place)
        return self._last_updates[index - 1] if index else self._before
