"""Stage 1: pair every new update with each composite stream subscribed to its origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from pipeline.journal import Journal, Made, Place, Verdict
from servioticy.graph import Graph
from servioticy.model import SensorUpdate, StreamRef


class Arrival(NamedTuple):
    """An update reaching a composite stream through one of its inputs."""

    place: Place
    composite: StreamRef
    input: int
    trigger: SensorUpdate


class Put(NamedTuple):
    """An update put on a composite stream from outside: its last output from there on."""

    place: Place
    composite: StreamRef
    made: Made


Step = Arrival | Put
Turn = Mapping[StreamRef, list[Step]]
"""The composites that compute next, each with its steps in order of place."""


MOST_ARRIVALS = 50_000
"""Computations of one batch: some 50 MB of rows in one transaction. One tree may have more."""


class Limits(NamedTuple):
    """How far one update may go; what lies beyond ends with a verdict."""

    hops: int
    computations: int


class TreeTooLarge(Exception):
    """An execution tree has more computations than allowed: it has to be taken alone."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class BatchTooLarge(Exception):
    """The updates of a batch cause more computations than fit: fewer have to be taken."""


class Waiting:
    """What has arrived at each composite stream and is not evaluated yet."""

    def __init__(self) -> None:
        self._steps: dict[StreamRef, list[Step]] = {}
        self.arrivals: Counter[int] = Counter()
        """by offset of the source update: the size of its tree so far"""
        self.arrived = 0

    def add(self, step: Step) -> None:
        """Let a step wait for its composite's turn."""
        self._steps.setdefault(step.composite, []).append(step)

    def take(self, composites: Iterable[StreamRef]) -> dict[StreamRef, list[Step]]:
        """All that waits at these composites, each list in order of place."""
        return {
            ref: sorted(steps, key=_place)
            for ref in composites
            if (steps := self._steps.pop(ref, None))
        }

    def one_by_one(self, composites: frozenset[StreamRef]) -> Iterator[Turn]:
        """The steps at these composites in serial order, those that still arrive included."""
        heap: list[tuple[Place, int, Step]] = []
        number = 0
        while True:
            for steps in self.take(composites).values():
                for step in steps:
                    number += 1
                    heappush(heap, (step.place, number, step))
            if not heap:
                return
            step = heappop(heap)[2]
            yield {step.composite: [step]}


def dispatch(
    new: Iterable[Made],
    graph: Graph,
    waiting: Waiting,
    journal: Journal,
    limits: Limits,
    *,
    alone: bool = False,
) -> None:
    """Let each new update wait at every composite that it wakes, in order of subscription.

    Raises TreeTooLarge at the limit of computations, unless the tree is `alone` and in
    serial order: then what lies beyond gets its verdict. Raises BatchTooLarge where several
    trees have too many together.
    """
    for arrival in _arrivals(new, graph):
        offset = arrival.place.offset
        if arrival.place.depth > limits.hops:
            _refuse(arrival, "hop-limit", f"more than {limits.hops} hops", journal)
            continue
        waiting.arrivals[offset] += 1
        waiting.arrived += 1
        if waiting.arrived > MOST_ARRIVALS and len(waiting.arrivals) > 1:
            raise BatchTooLarge
        if waiting.arrivals[offset] <= limits.computations:
            waiting.add(arrival)
        elif alone:
            message = f"more than {limits.computations} computations from one update"
            _refuse(arrival, "computation-limit", message, journal)
        else:
            raise TreeTooLarge(offset)


def settle(turn: Turn, graph: Graph, journal: Journal) -> Turn:
    """Where a composite chose so, of several paths of one tree only the last computes."""
    return {
        ref: _last_paths(steps, journal)
        if graph.composite(ref)[2].options.diamonds == "settle"
        else steps
        for ref, steps in turn.items()
    }


def _last_paths(steps: list[Step], journal: Journal) -> list[Step]:
    last = {each.place.offset: each for each in steps if isinstance(each, Arrival)}
    kept = []
    for each in steps:
        if isinstance(each, Put) or last[each.place.offset] is each:
            kept.append(each)
        else:
            _refuse(each, "superseded", "a later path of the same tree computes", journal)
    return kept


def _refuse(arrival: Arrival, kind: str, message: str, journal: Journal) -> None:
    journal.end(Verdict(arrival.place, arrival.composite, kind, arrival.trigger, message))


def _arrivals(new: Iterable[Made], graph: Graph) -> Iterator[Arrival]:
    for (offset, depth, path), update in new:
        for index, wake in enumerate(graph.wakes(update.origin)):
            place = Place(offset, depth + 1, (*path, index))
            yield Arrival(place, wake.composite, wake.input, update)


def _place(step: Step) -> Place:
    return step.place
