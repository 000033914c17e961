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
from dataclasses import dataclass, field

from pipeline.steps import Fold, NewUpdate, Place
from sandbox.program import Fault, Outcome, Value
from servioticy.domain.model import SensorUpdate, StreamRef
from servioticy.domain.records import EmittedRecord
from servioticy.domain.verdicts import TIMEOUT

NOTHING_THEN = Fault(TIMEOUT, "computed again after a crash: nothing came of it the first time")


@dataclass(slots=True)
class _Tree:
    """What is known of the tree of one offset."""

    last: Place
    """Up to where it is known at least."""
    root: SensorUpdate | None = None
    """The update of the log that it follows from."""
    values: dict[tuple[StreamRef, Place], Value] = field(default_factory=dict)
    is_whole: bool = False
    """Whether all of it is known."""


class Decided:
    """The outcomes that subscribers know, of each tree that has begun to be emitted."""

    def __init__(self, emitted: Iterable[EmittedRecord] = ()) -> None:
        self._trees: dict[int, _Tree] = {}
        before: int | None = None
        for each in emitted:
            if each.place is not None:
                offset, depth, *path = each.place
                place = Place(offset, depth, tuple(path))
                self._add(place, each)
                if before != offset and before in self._trees:
                    self._trees[before].is_whole = True
                before = offset

    def _add(self, place: Place, emitted: EmittedRecord) -> None:
        ref = StreamRef(emitted.service_object, emitted.stream)
        update = SensorUpdate(ref, emitted.timestamp, bytes(emitted.update))
        if place.depth == 0:
            self.meets(NewUpdate(place, update))
        tree = self._trees.setdefault(place.offset, _Tree(place))
        if place.depth == 0:
            tree.root = update
        tree.last = max(place, tree.last)
        tree.values[ref, place] = Value(update.timestamp, update.document)

    def meets(self, new: NewUpdate) -> None:
        """The log has this update at its place: a tree of another one there is forgotten.

        It was emitted of a part of the log that is lost.
        """
        tree = self._trees.get(new.place.offset)
        if tree is not None and tree.root is not None and tree.root != new.update:
            del self._trees[new.place.offset]

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
        tree = self._trees.get(place.offset)
        return tree is not None and (composite, place) in tree.values

    def outcomes(self, fold: Fold, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """The outcomes of the fold's steps, where subscribers know them as they know them."""
        if not self._trees:
            return outcomes
        return [
            self._outcome(fold.composite, pending.step.place, outcome)
            for pending, outcome in zip(fold.steps, outcomes, strict=True)
        ]

    def _outcome(self, composite: StreamRef, place: Place, outcome: Outcome) -> Outcome:
        tree = self._trees.get(place.offset)
        if tree is None:
            return outcome
        known = tree.values.get((composite, place))
        if known is not None:
            return known
        known_to_be_nothing = tree.is_whole or place <= tree.last
        return NOTHING_THEN if isinstance(outcome, Value) and known_to_be_nothing else outcome
