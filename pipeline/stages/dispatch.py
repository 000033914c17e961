"""Stage 1: pair every new update with each composite stream subscribed to its origin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pipeline.journal import Made, Place
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
    made: Made


Step = Arrival | Put


class Waiting:
    """What has arrived at each composite stream and is not evaluated yet."""

    def __init__(self) -> None:
        self._steps: dict[StreamRef, list[Step]] = {}

    def add(self, composite: StreamRef, step: Step) -> None:
        """Let a step wait for its composite's turn."""
        self._steps.setdefault(composite, []).append(step)

    def take(self, composites: Iterable[StreamRef]) -> dict[StreamRef, list[Step]]:
        """All that waits at these composites, each list in order of place."""
        return {
            ref: sorted(steps, key=lambda each: each.place)
            for ref in composites
            if (steps := self._steps.pop(ref, None))
        }

    def take_first(self) -> dict[StreamRef, list[Step]]:
        """The one step that the serial order has next; empty where nothing waits."""
        if not self._steps:
            return {}
        ref = min(self._steps, key=lambda each: min(step.place for step in self._steps[each]))
        steps = sorted(self._steps.pop(ref), key=lambda each: each.place)
        if steps[1:]:
            self._steps[ref] = steps[1:]
        return {ref: steps[:1]}


def dispatch(new: Iterable[Made], graph: Graph, waiting: Waiting) -> None:
    """Let each new update wait at every composite that it wakes, in order of subscription."""
    for arrival in _arrivals(new, graph):
        waiting.add(arrival.composite, arrival)


def _arrivals(new: Iterable[Made], graph: Graph) -> Iterator[Arrival]:
    for (offset, depth, path), update in new:
        for index, wake in enumerate(graph.wakes(update.origin)):
            place = Place(offset, depth + 1, (*path, index))
            yield Arrival(place, wake.composite, wake.input, update)
