"""Stage 1: pair every new update with each composite stream subscribed to its origin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from heapq import heappop, heappush
from typing import NamedTuple

from pipeline.journal import Journal, Made, Place, Verdict
from pipeline.limits import Limits, TreeTooLarge
from pipeline.sharing.spending import Spending
from servioticy.domain.graph import Graph, Wake
from servioticy.domain.model import SensorUpdate, StreamRef
from servioticy.domain.verdicts import HOP_LIMIT, OVER_SHARE, SUPERSEDED


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


class Waiting:
    """What has arrived at each composite stream and is not evaluated yet."""

    def __init__(self) -> None:
        self._steps: dict[StreamRef, list[Step]] = {}
        self._touched: set[StreamRef] = set()

    def add(self, step: Step) -> None:
        """Let a step wait for its composite's turn."""
        self._steps.setdefault(step.composite, []).append(step)
        self._touched.add(step.composite)

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
        new: Iterable[StreamRef] = composites
        while True:
            for steps in self.take(new).values():
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


class Rules(NamedTuple):
    """What holds for one batch."""

    limits: Limits
    alone: bool = False
    """one tree, taken in serial order: the limits cut it where that order does"""
    refused: Set[int] = frozenset()
    """tenants over their share of the partition's time: others' updates do not wake theirs"""


def dispatch(
    new: Iterable[Made],
    graph: Graph,
    waiting: Waiting,
    journal: Journal,
    spending: Spending,
    rules: Rules,
) -> None:
    """Let each new update wait at every composite that it wakes, in order of subscription.

    Raises TreeTooLarge at a limit, unless the tree is taken alone: then what lies beyond
    gets its verdict. Raises BatchTooLarge where several trees have too much together.
    """
    most_hops = rules.limits.hops
    for made in new:
        (offset, depth, path), update = made
        for index, wake in _wakes(made, graph, journal, spending, rules):
            place = Place(offset, depth + 1, (*path, index))
            arrival = Arrival(place, wake.composite, wake.input, update)
            if place.depth > most_hops:
                _refuse(arrival, HOP_LIMIT, f"more than {most_hops} hops", journal)
                continue
            part = offset, graph.tenant(wake.composite)
            spending.count(part)
            if not spending.is_counted_out(part):
                waiting.add(arrival)
            elif rules.alone:
                if spending.is_noted(part):
                    _refuse(arrival, *spending.computation_refusal(part), journal)
            else:
                raise TreeTooLarge(offset)


MAX_SHED_NOTED = 100
"""Composites of others over their share that get a verdict; the rest end without one."""


def _wakes(
    made: Made, graph: Graph, journal: Journal, spending: Spending, rules: Rules
) -> Iterable[tuple[int, Wake]]:
    """Whom the update wakes, each with its number, but for tenants that are refused.

    In the tree of a tenant's own update nothing of his is refused: he is made to wait before.
    """
    (offset, depth, path), update = made
    refused = rules.refused - {spending.owner(offset)} if rules.refused else rules.refused
    if not refused:
        return enumerate(graph.wakes(update.origin))
    split = graph.wakes_but(update.origin, refused)
    for index, wake in split.refused[:MAX_SHED_NOTED]:
        place = Place(offset, depth + 1, (*path, index))
        arrival = Arrival(place, wake.composite, wake.input, update)
        _refuse(arrival, OVER_SHARE, "its tenant has used its share of time here", journal)
    return split.others


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
            _refuse(each, SUPERSEDED, "a later path of the same tree computes", journal)
    return kept


def _refuse(arrival: Arrival, kind: str, message: str, journal: Journal) -> None:
    journal.end(Verdict(arrival.place, arrival.composite, kind, arrival.trigger, message))


def _place(step: Step) -> Place:
    return step.place
