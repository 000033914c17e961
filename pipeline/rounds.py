"""Evaluates composites round by round, each of them after all that it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from operator import itemgetter

from pipeline.state.batch import BatchState
from pipeline.steps import DIRECT_WRITE, Place, Round, Step, Verdict
from servioticy.domain.graph import Graph
from servioticy.domain.levels import Level
from servioticy.domain.model import StreamRef
from servioticy.domain.verdicts import SUPERSEDED


class Waiting:
    """The steps that wait at each composite stream for the round in which it is evaluated."""

    def __init__(self) -> None:
        self._steps: dict[StreamRef, list[Step]] = {}
        self._touched: set[StreamRef] = set()

    def add(self, steps: Round) -> None:
        """Let steps wait, in whatever order they come. The lists are taken over."""
        for composite, theirs in steps.items():
            waiting = self._steps.get(composite)
            if waiting is None:
                self._steps[composite] = theirs
            else:
                waiting += theirs
        self._touched.update(steps)

    def pop(self, composites: Iterable[StreamRef]) -> Round:
        """Remove all that waits at these composites; each list comes in order of place."""
        return {
            ref: sorted(steps, key=_place)
            for ref in composites
            if (steps := self._steps.pop(ref, None))
        }

    def one_by_one(self, composites: frozenset[StreamRef]) -> Iterator[Round]:
        """Each step at these composites as a round of its own, in serial order.

        Steps that are added between two rounds come at their place, too.
        """
        heap: list[tuple[Place, int, Step]] = []
        number = 0
        new: Iterable[StreamRef] = composites
        while True:
            for steps in self.pop(new).values():
                for step in steps:
                    number += 1
                    heappush(heap, (step.place, number, step))
            if not heap:
                return
            self._touched.clear()
            step = heappop(heap)[2]
            yield {step.composite: [step]}
            # To look at all of them after each step would be quadratic.
            new = [ref for ref in self._touched if ref in composites]


def rounds(
    waiting: Waiting, levels: Iterable[Level], graph: Graph, state: BatchState
) -> Iterator[Round]:
    """Which composites are evaluated next: a level at once, its loops one step at a time.

    What is added to `waiting` in the meantime comes in a later round. Steps of which only
    the last path counts get their verdict in `state`.
    """
    for level in levels:
        if steps := waiting.pop(level.at_once):
            yield _without_earlier_paths(steps, graph, state)
        for loop in level.loops:
            if len(loop) == 1:
                waiting.add(_without_earlier_paths(waiting.pop(loop), graph, state))
            yield from waiting.one_by_one(loop)


def _without_earlier_paths(steps: Round, graph: Graph, state: BatchState) -> Round:
    """The steps without those that another path of the same tree supersedes.

    A composite chooses so by the option `diamonds`: `settle`.
    """
    kept = {}
    for ref, theirs in steps.items():
        if graph.composite(ref)[2].options.diamonds == "settle":
            kept[ref], superseded = _last_paths(theirs)
            state.end(superseded)
        else:
            kept[ref] = theirs
    return kept


def _last_paths(steps: list[Step]) -> tuple[list[Step], list[Verdict]]:
    last = {each.place.offset: each for each in steps if each.kind != DIRECT_WRITE}
    kept, superseded = [], []
    for each in steps:
        if each.kind == DIRECT_WRITE or last[each.place.offset] is each:
            kept.append(each)
        else:
            message = "a later path of the same tree computes"
            superseded.append(
                Verdict(each.place, each.composite, SUPERSEDED, each.update, message)
            )
    return kept, superseded


_place = itemgetter(0)
