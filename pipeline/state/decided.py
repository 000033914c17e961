"""What subscribers have got already of a part of the log that is computed again.

Commits do not wait for the disk, and emission follows at once: a Postgres that is killed may
forget what was emitted. Computed again, a script near its budget may end otherwise. So what
was emitted counts: each update says of which place in the serial order it is, those that
come after stored progress are read back, and the trees that they are of end as they did
then. Trees are emitted one after the other, each in serial order: so of a tree that another
one follows it is known of every place whether anything came of it, of others up to their last
place. What was computed again before is there again, perhaps less of it. A tree is told by the
offset of its record, the tenant of its streams, and which answer of the record it grows from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from sandbox.trees import ROOT, Made, Path
from servioticy.domain.evaluators.steps import Outcome
from servioticy.domain.model import SensorUpdate, StreamRef
from servioticy.domain.records import EmittedRecord
from servioticy.domain.verdicts import EMITTED, TIMEOUT

NOTHING_THEN = "computed again after a crash: nothing came of it the first time"

Place: TypeAlias = tuple[int, int, Path]
"""Offset in the log, depth in the tree, path through it."""


Tree: TypeAlias = tuple[int, int, int]
"""Offset in the log, tenant, and the number of an answer, below zero, if it grows from one."""


@dataclass(slots=True)
class _Tree:
    """What is known of one tree."""

    last: Place
    """Up to where it is known at least."""
    root: SensorUpdate | None = None
    """The update of the log that it follows from."""
    values: dict[tuple[StreamRef, Place], SensorUpdate] = field(default_factory=dict)
    is_whole: bool = False
    """Whether all of it is known."""


class Decided:
    """The outcomes that subscribers know, of each tree that has begun to be emitted."""

    def __init__(self, emitted: Iterable[EmittedRecord] = ()) -> None:
        self._trees: dict[Tree, _Tree] = {}
        self._offsets: set[int] = set()
        before: Tree | None = None
        for each in emitted:
            if each.place is not None:
                offset, depth, *path = each.place
                tree = _tree_of(each.tenant, offset, tuple(path))
                self._add((offset, depth, tuple(path)), each)
                if before != tree and before in self._trees:
                    self._trees[before].is_whole = True
                before = tree

    def _add(self, place: Place, emitted: EmittedRecord) -> None:
        ref = StreamRef(emitted.service_object, emitted.stream)
        update = SensorUpdate(ref, emitted.timestamp, bytes(emitted.update))
        offset, depth, path = place
        if depth == 0:
            self.meets(offset, emitted.tenant, update)
        tree = self._trees.setdefault(_tree_of(emitted.tenant, offset, path), _Tree(place))
        self._offsets.add(offset)
        if depth == 0:
            tree.root = update
        tree.last = max(place, tree.last)
        tree.values[ref, place] = update

    def meets(self, offset: int, tenant: int, update: SensorUpdate) -> None:
        """The log has this update at this offset: a tree of another one there is forgotten.

        It was emitted of a part of the log that is lost.
        """
        tree = self._trees.get((offset, tenant, 0))
        if tree is not None and tree.root is not None and tree.root != update:
            del self._trees[offset, tenant, 0]

    @property
    def trees(self) -> int:
        """How many trees are known, or in part."""
        return len(self._trees)

    def begins(self, offset: int) -> bool:
        """Whether anything of a tree of this offset is known."""
        return offset in self._offsets

    def covers(self, offset: int, tenant: int, root: Path = ROOT) -> bool:
        """Whether anything of the tenant's tree of this offset and root is known.

        If so, it has to be computed one step at a time: each depends on the one before.
        """
        return _tree_of(tenant, offset, root) in self._trees

    def knows(self, tenant: int, composite: StreamRef, place: Place) -> bool:
        """Whether subscribers got a value of this computation, of a composite of the tenant."""
        tree = self._trees.get(_tree_of(tenant, place[0], place[2]))
        return tree is not None and (composite, place) in tree.values

    def outcome(
        self, tenant: int, composite: StreamRef, place: Place, outcome: Outcome
    ) -> Outcome:
        """The outcome of a computation: where subscribers know it, as they know it.

        Of one that makes one update at most: windows make several, which nobody knows.
        """
        tree = self._trees.get(_tree_of(tenant, place[0], place[2]))
        if tree is None:
            return outcome
        known = tree.values.get((composite, place))
        if known is not None:
            state = outcome.made[0].state if outcome.made else None
            made = Made(0, 0, 0, known.timestamp, known.document, state)
            return Outcome([made], EMITTED, "", outcome.inputs, outcome.kept)
        if outcome.made and (tree.is_whole or place <= tree.last):
            return Outcome((), TIMEOUT, NOTHING_THEN, outcome.inputs)  # nor kept it anything
        return outcome


def _tree_of(tenant: int, offset: int, path: Path) -> Tree:
    return offset, tenant, min(path[0], 0) if path else 0
