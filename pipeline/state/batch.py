"""What one batch has made so far: its trees, how computations ended, and what is on the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import cast

from pipeline.growth import (
    Entered,
    Finished,
    KeptEntry,
    NewRow,
    NewUpdate,
    RegionOutput,
    Verdict,
)
from pipeline.work import LoggedUpdate
from sandbox.trees import FOLLOWERS, NOBODY, Event, Path
from servioticy.domain.borders import revision_over
from servioticy.domain.known_streams import (
    Entry,
    KnownStream,
    Region,
    ends_result,
    is_passing,
    revision_in,
)
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.timing import becomes_last
from servioticy.domain.verdicts import EMITTED

STEPS_OF_A_TREE = 2**17
"""Several trees of a tenant, of one record: each has its places behind those of the one before."""

_event = cast(Callable[..., Event], tuple.__new__)
_last = cast(Callable[..., LastUpdate], tuple.__new__)
"""A third of what it takes to call the class."""


class BatchState:
    """Collects what the stages return; they do not see it, except the last.

    What crosses from one region into others waits here until those are evaluated.
    """

    def __init__(
        self,
        updates: Sequence[LoggedUpdate],
        origins: Sequence[Sequence[KnownStream]],
        last_updates: Mapping[StreamRef, LastUpdate | None],
    ) -> None:
        """Begin with the roots of trees, their streams, and last updates before."""
        self._updates = updates
        self._before = last_updates
        self._roots: list[list[NewUpdate]] = [
            [
                (origin, timestamp, document, path, None)
                for origin, (_ref, timestamp, document, path) in zip(some, each.roots, strict=True)
            ]
            for some, each in zip(origins, updates, strict=True)
        ]
        # What came over a border is stored and emitted where it was made.
        self._trees: list[list[NewUpdate]] = [
            list(roots) if each.is_stored else []
            for each, roots in zip(updates, self._roots, strict=True)
        ]
        self._mixed: set[int] = set()
        self._waiting: defaultdict[int, dict[Region, dict[int, list[Event]]]] = defaultdict(dict)
        """By level."""
        self._levels: list[int] = []
        """A heap: a tree may enter thousands of regions, each of another level."""
        self._endings: dict[tuple[KnownStream, str], Verdict] = {}
        self._kept: list[KeptEntry] = []
        self._unsaid: dict[tuple[int, KnownStream, int], Path] = {}
        """What windows have taken back in a tree of what a stream has of a timestamp, and code has
        not made anything of yet."""

    def enter(self, entries: Iterable[Sequence[Sequence[Entry]]]) -> None:
        """Let the roots of each tree wait for the regions that each of them enters.

        Revisions that have come over a border wake those that follow them.
        """
        for number, (roots, theirs) in enumerate(zip(self._roots, entries, strict=True)):
            is_input = self._updates[number].is_input
            for root, regions in zip(roots, theirs, strict=True):
                if regions:
                    is_revision = is_input and revision_over(root[2], root[3]) is not None
                    self._enter(number, root, regions, FOLLOWERS if is_revision else None)

    def _enter(
        self, number: int, update: NewUpdate, entries: Sequence[Entry], only: int | None = None
    ) -> None:
        """Let an update of the tree with this number wait for regions that it enters."""
        _stream, timestamp, document, path, _state = update
        for region, node in entries:
            if region.level not in self._waiting:
                heappush(self._levels, region.level)
            waiting = self._waiting[region.level].setdefault(region, {})
            event = _event(Event, (node, timestamp, document, path, only))
            events = waiting.get(number)
            if events is None:
                waiting[number] = [event]
            else:
                events.append(event)

    def next_level(self) -> Entered:
        """What waits for the regions of the lowest level; nothing comes into them any more."""
        if not self._levels:
            return {}
        level = heappop(self._levels)
        if self._unsaid:
            self._say(level)
        return self._waiting.pop(level)

    def _say(self, level: int) -> None:
        """Let operators that look into history know what is gone, of regions below that level."""
        for key in list(self._unsaid):
            number, stream, timestamp = key
            if stream.region is not None and stream.region.level < level:
                gone = stream, timestamp, b"", (*self._unsaid.pop(key), 0), None
                operators = [each for each in stream.crosses if each[0].keeps]
                self._enter(number, gone, operators, NOBODY)

    def add(self, grown: Iterable[RegionOutput]) -> None:
        """Note what regions have made; it goes on into the regions behind them."""
        for region, number, updates, kept in grown:
            self._kept += kept
            if not updates:
                continue
            tree = self._trees[number]
            if len(tree) > 1 or (tree and tree[0][3]):
                self._mixed.add(number)
            tree += updates
            if region.leads_on:
                for update in updates:
                    stream, timestamp, document, path, _state = update
                    if stream.feeds is not None and ends_result(stream, document):
                        self._unsaid[number, stream.feeds, timestamp] = path
                    elif self._unsaid:
                        self._unsaid.pop((number, stream, timestamp), None)
                    if not document:
                        continue  # there is nothing to compute
                    revision = revision_in(update[0], update[2], update[3])
                    if revision is None:
                        self._enter(number, update, update[0].crosses)
                    elif revision.is_kept:
                        self._enter(number, update, update[0].crosses, FOLLOWERS)

    def end(self, verdicts: Iterable[Verdict]) -> None:
        """Note how computations ended; those of one composite come in the serial order."""
        for each in verdicts:
            if each.composite.feeds is not None:
                if each.kind == EMITTED:
                    continue  # what its code makes of them is told
                each = each._replace(composite=each.composite.feeds, inputs=None)
            key = each.composite, each.kind
            before = self._endings.get(key)
            if before is not None:
                each = each._replace(times=each.times + before.times)
            self._endings[key] = each

    @property
    def endings(self) -> Iterable[Verdict]:
        """How computations ended: one of each composite and kind of verdict."""
        return self._endings.values()

    def finish(self) -> Finished:
        """All updates in the serial order, and the last updates after them."""
        for number in self._mixed:
            self._trees[number].sort(key=_place)
        self._mixed.clear()
        last_updates: dict[KnownStream, LastUpdate] = {}
        rows: list[NewRow] = []
        before = self._before
        repeating: set[KnownStream] = set()
        gone: dict[tuple[KnownStream, int], NewRow] = {}
        for each, tree in zip(self._updates, self._trees, strict=True):
            key = each.key
            first = 0 if each.is_stored else 1 + each.tree * STEPS_OF_A_TREE * each.is_tick
            for position, (stream, timestamp, document, path, state) in enumerate(tree, first):
                if stream.feeds is not None:
                    if ends_result(stream, document):
                        stream = stream.feeds
                        last = last_updates.get(stream) or before.get(stream.ref)
                        if last is not None and timestamp <= last.timestamp:
                            row = stream, timestamp, last.document, key, position, path
                            gone[stream, timestamp] = row
                    continue
                if stream.revises and is_passing(stream, document, path):
                    rows.append((stream, timestamp, document, key, position, path))
                    continue
                if gone:
                    gone.pop((stream, timestamp), None)
                last = last_updates.get(stream) or before.get(stream.ref)
                if last is not None:
                    if timestamp <= last.timestamp:
                        repeating.add(stream)
                    if state is None:
                        state = last.state  # a direct write: it was made of nothing here
                if last is None or becomes_last(timestamp, last.timestamp):
                    last_updates[stream] = _last(LastUpdate, (timestamp, document, state))
                rows.append((stream, timestamp, document, key, position, path))
        return Finished(
            rows, last_updates, self._inputs(), repeating, self._kept, [*gone.values()]
        )

    def _inputs(self) -> dict[KnownStream, LastUpdate]:
        """The last updates of inputs from outside that are kept, where they are other ones."""
        found: dict[KnownStream, LastUpdate] = {}
        for each, roots in zip(self._updates, self._roots, strict=True):
            for stream, timestamp, document, path, _state in roots if each.is_input else ():
                if stream.keeper is None:
                    continue
                revision = revision_over(document, path)
                if revision is not None and revision.takes_back:
                    continue  # what follows is computed from it all the same, as in its tenant
                last = found.get(stream) or self._before.get(stream.ref)
                if last is None or becomes_last(timestamp, last.timestamp):
                    found[stream] = LastUpdate(timestamp, document)
        return found


def _place(update: NewUpdate) -> tuple[int, Path]:
    """Of a tree, breadth first."""
    return len(update[3]), update[3]
