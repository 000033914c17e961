"""What composites make of trees of history.

What stands before windows is grown by the engine's own evaluator, many trees at a time; windows,
and all that is derived from them, one tree after the other, with the times between.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from api.backfills.behind import Behind
from api.backfills.region import Concerned
from api.backfills.span import Span
from api.backfills.together import Together
from api.backfills.trees import Stored, Tree
from api.replaying.moments import moment
from api.replaying.replay import Means
from sandbox.revisions import revision_of
from sandbox.trees import Bounds, Event, Grown, Made, Path
from servioticy.domain.known_streams import KnownStream, Region, ends_result
from servioticy.domain.model import StreamRef, Timestamp

ROWS = 1_000
"""Rows that are given out together, of what comes behind windows."""
SECONDS = 10.0
"""After so long what there is of them is given out."""

GONE = b'{"channels":{},"revision":0,"retracted":true}'
"""Of a result that windows have taken back: it is left out where a backfill takes its place."""


class NewRow(NamedTuple):
    """An update of a composite, and the place in the log that it is stored with."""

    stream: StreamRef
    timestamp: Timestamp
    version: int
    log_partition: int
    log_offset: int
    log_position: int
    document: bytes


class Growing:
    """Goes on from the last updates that there were before."""

    def __init__(
        self,
        concerned: Concerned,
        lasts: Mapping[StreamRef, Stored],
        span: Span,
        bounds: Bounds,
        means: Means,
    ) -> None:
        """`lasts` are those before all that is read."""
        self._span = span
        self._concerned = concerned
        self._together = Together(concerned.before_windows(), lasts, bounds, means)
        region = concerned.behind_windows()
        self._behind = None if region is None else Behind(region, lasts, bounds, means)
        self._rows: dict[tuple[StreamRef, Timestamp], NewRow] = {}
        self._root, self._position = (0, 0), 1
        self._began = time.monotonic()
        for each in sorted(lasts.values(), key=lambda each: (each.timestamp, each.stream)):
            self._warm(each)

    @property
    def operating(self) -> float:
        """Seconds of the processor that operators have taken."""
        return 0.0 if self._behind is None else self._behind.operating

    def grow(self, trees: Sequence[Tree]) -> Iterator[list[NewRow]]:
        """Yield what comes of them, some rows at a time, each once at a time.

        Raises Refused where code is too slow, or makes too much.
        """
        early = [each for each in trees if each[0].update.timestamp < self._span.since]
        for tree in early:
            for entry in tree:
                self._warm(entry.update)
        late = trees[len(early) :]
        for tree, made in zip(late, self._together.made(late), strict=True):
            update = tree[0].update
            if self._behind is not None:
                yield from self._pass_to(moment(update.timestamp, self._span.now) or 0)
            self._root = update.root
            self._position = 1 + max(each.update.log_position for each in tree)
            self._take(self._together.region, made)
            if self._behind is not None:
                events = self._events(tree, made, self._behind)
                self._take(self._behind.region, self._behind.grown(events).made[0])
        yield self._taken()

    def finish(self) -> Iterator[list[NewRow]]:
        """Yield what comes as time goes on behind all that is read, as grow does."""
        yield from self._pass_to(self._span.passes_to)
        yield self._taken()

    def _warm(self, update: Stored) -> None:
        """Take what is before the span: it is there to be read, and may be in windows."""
        self._root, self._position = update.root, update.log_position + 1
        self._together.becomes(update)
        if self._behind is not None:
            at = moment(update.timestamp, self._span.now) or 0
            self._behind.warm(update, at, self._concerned.reach_back)

    def _pass_to(self, at: int) -> Iterator[list[NewRow]]:
        for _event, grown in self._behind.passing(at) if self._behind else ():
            self._take_grown(grown)
            if len(self._rows) >= ROWS or time.monotonic() - self._began >= SECONDS:
                yield self._taken()

    def _take_grown(self, grown: Grown) -> None:
        if self._behind is not None:
            self._take(self._behind.region, grown.made[0])

    def _taken(self) -> list[NewRow]:
        found = list(self._rows.values())
        self._rows.clear()
        self._began = time.monotonic()
        return found

    def _take(self, region: Region | None, made: Sequence[Made]) -> None:
        if region is None:
            return
        for each in made:
            stream = region.stream(each.node)
            if ends_result(stream, each.document) and self._span.has(each.timestamp):
                stream, each = cast(KnownStream, stream.feeds), each._replace(document=GONE)
            if self._is_stored(stream, each):
                ref = StreamRef(*stream.ref)
                place = *self._root, self._position
                self._rows[ref, each.timestamp] = NewRow(
                    ref, each.timestamp, stream.version, *place, each.document
                )
            self._position += 1

    def _is_stored(self, stream: KnownStream, made: Made) -> bool:
        """Whether it is of the span, no window, and not only sent."""
        if stream.feeds is not None or not self._span.has(made.timestamp):
            return False
        revision = revision_of(made.document) if stream.revises else None
        return revision is None or revision.is_kept

    def _events(self, tree: Tree, made: Sequence[Made], behind: Behind) -> list[Event]:
        """Return what of a tree, and of what was made of it, is read behind windows."""
        found: list[tuple[StreamRef, Event]] = [
            (update.stream, Event(0, update.timestamp, update.document, path))
            for update, path in tree
        ]
        paths: list[Path] = [path for _update, path in self._together.known(tree)]
        for each in made:
            path = (*paths[each.parent], each.wake)
            paths.append(path)
            ref = self._together.ref(each)
            found.append((ref, Event(0, each.timestamp, each.document, path)))
        events = [
            event._replace(node=behind.numbers[ref])
            for ref, event in found
            if ref in behind.numbers
        ]
        return sorted(events, key=lambda each: (len(each.path), each.path))
