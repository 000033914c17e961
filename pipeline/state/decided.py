"""What subscribers have got already of a part of the log that is computed again.

Commits do not wait for the disk, and emission follows at once: a Postgres that is killed may
forget what was emitted. Computed again, a script near its budget may end otherwise. So what
was emitted counts: each update says of which place in the serial order it is, those that
come after stored progress are read back, and the trees that they are of end as they did
then. Trees are emitted one after the other, each in serial order: so of a tree that another
one follows it is known of every place whether anything came of it, of others up to their last
place. What was computed again before is there again, perhaps less of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.steps import Fold, Place
from sandbox.program import Fault, Outcome, Value
from servioticy.domain.model import StreamRef
from servioticy.domain.records import EmittedRecord
from servioticy.domain.verdicts import TIMEOUT

NOTHING_THEN = Fault(TIMEOUT, "computed again after a crash: nothing came of it the first time")


class Decided:
    """The outcomes that subscribers know, of each tree that has begun to be emitted."""

    def __init__(self, emitted: Iterable[EmittedRecord] = ()) -> None:
        self._values: dict[tuple[StreamRef, Place], Value] = {}
        self._trees: dict[int, Place] = {}
        """up to where each tree is known at least"""
        self._whole: set[int] = set()
        """the trees of which all is known, by their offset"""
        before: int | None = None
        for each in emitted:
            if each.place is not None:
                offset, depth, *path = each.place
                place = Place(offset, depth, tuple(path))
                ref = StreamRef(each.service_object, each.stream)
                self._values[ref, place] = Value(each.timestamp, bytes(each.update))
                self._trees[offset] = max(place, self._trees.get(offset, place))
                if before is not None and before != offset:
                    self._whole.add(before)
                before = offset

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
        return (composite, place) in self._values

    def outcomes(self, fold: Fold, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """The outcomes of the fold's steps as subscribers know them, where they do."""
        if not self._trees:
            return outcomes
        return [
            self._outcome(fold.composite, pending.step.place, outcome)
            for pending, outcome in zip(fold.steps, outcomes, strict=True)
        ]

    def _outcome(self, composite: StreamRef, place: Place, outcome: Outcome) -> Outcome:
        if place.offset not in self._trees:
            return outcome
        known = self._values.get((composite, place))
        if known is not None:
            return known
        whole = place.offset in self._whole
        known_to_be_nothing = whole or place <= self._trees[place.offset]
        return NOTHING_THEN if isinstance(outcome, Value) and known_to_be_nothing else outcome
