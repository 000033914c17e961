"""What subscribers have got already of a part of the log that is computed again.

Commits do not wait for the disk, and emission follows at once: a Postgres that is killed may
forget what was emitted. Computed again, a script near its budget may end otherwise. So what
was emitted counts: each update says of which place in the serial order it is, those that
come after stored progress are read back, and the trees that they are of end as they did
then. Trees are emitted one after the other, each in serial order: so of all but the last one
it is known of every place whether anything came of it, and of the last up to its last place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.journal import Made, Place
from pipeline.stages.fetch import Fold
from sandbox.program import Fault, Outcome, Value
from servioticy.messaging.records import EmittedRecord
from servioticy.model import SensorUpdate, StreamRef

NOTHING_THEN = Fault("timeout", "computed again after a crash: nothing came of it the first time")


class Decided:
    """The outcomes that subscribers know, of each tree that has begun to be emitted."""

    def __init__(self, emitted: Iterable[EmittedRecord] = ()) -> None:
        self._trees: dict[int, dict[tuple[StreamRef, Place], Value]] = {}
        self._roots: dict[int, SensorUpdate] = {}
        self._last: Place | None = None
        """up to where the tree is known that was the last to be emitted"""
        for each in emitted:
            if each.place is not None:
                offset, depth, *path = each.place
                ref = StreamRef(each.service_object, each.stream)
                update = SensorUpdate(ref, each.timestamp, bytes(each.update))
                self._last = Place(offset, depth, tuple(path))
                if depth == 0:
                    self.meets(Made(self._last, update))
                    self._roots[offset] = update
                tree = self._trees.setdefault(offset, {})
                tree[ref, self._last] = Value(each.timestamp, update.document)

    def meets(self, made: Made) -> None:
        """The log has this update at its place: a tree of another one there is forgotten.

        It was emitted of a part of the log that is lost.
        """
        offset = made.place.offset
        if self._roots.get(offset, made.update) != made.update:
            del self._trees[offset], self._roots[offset]

    @property
    def trees(self) -> int:
        """How many trees are known, or in part."""
        return len(self._trees)

    def covers(self, offset: int) -> bool:
        """Whether anything of the tree of this offset is known.

        If so, it has to be computed one step at a time: each depends on the one before.
        """
        return offset in self._trees

    def knows(self, composite: StreamRef, place: Place) -> bool:
        """Whether subscribers got a value of this computation."""
        return (composite, place) in self._trees.get(place.offset, {})

    def outcomes(self, fold: Fold, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """The outcomes of the fold's steps as subscribers know them, where they do."""
        if not self._trees:
            return outcomes
        return [
            self._outcome(fold.composite, asked.step.place, outcome)
            for asked, outcome in zip(fold.asked, outcomes, strict=True)
        ]

    def _outcome(self, composite: StreamRef, place: Place, outcome: Outcome) -> Outcome:
        tree = self._trees.get(place.offset)
        if tree is None:
            return outcome
        known = tree.get((composite, place))
        if known is not None:
            return known
        last = self._last
        cut = last is not None and place.offset == last.offset and place > last
        return NOTHING_THEN if isinstance(outcome, Value) and not cut else outcome
