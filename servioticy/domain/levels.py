"""In which order to compute composites: each after all that it reads, in levels.

The composites of a level read nothing of each other. Where composites read each other in a
cycle there is no such order, and their computations are taken one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from graphlib import TopologicalSorter
from typing import NamedTuple

from servioticy.domain.model import StreamRef
from servioticy.domain.strong_components import strongly_connected_components


class Level(NamedTuple):
    """Composites that read nothing of each other.

    Those of `at_once` compute each for a whole batch at once. The computations of those in
    `loops` can only be taken one at a time.
    """

    at_once: list[StreamRef]
    loops: list[frozenset[StreamRef]]


class Plan(NamedTuple):
    """The composites that some updates can reach, and the levels to compute them by."""

    reachable: set[StreamRef]
    levels: list[Level]


class Loop(NamedTuple):
    """Composites whose computations can only be taken one at a time."""

    first: StreamRef
    members: frozenset[StreamRef]


class Rank(NamedTuple):
    """The number of a composite's level, and the loop that the composite is part of."""

    level: int
    loop: Loop | None = None


Ranks = dict[StreamRef, Rank]


def levels_of(
    reads: Mapping[StreamRef, Collection[StreamRef]], stepwise: Callable[[StreamRef], bool]
) -> list[Level]:
    """The levels of some composites; `reads` says what each reads of the others.

    `stepwise` says of a composite whether it is to be computed one step at a time anyway.
    """
    components = strongly_connected_components(reads)
    component_of = {ref: number for number, each in enumerate(components) for ref in each}
    sorter = TopologicalSorter(
        {
            number: {component_of[read] for ref in each for read in reads[ref]} - {number}
            for number, each in enumerate(components)
        }
    )

    def is_loop(component: list[StreamRef]) -> bool:
        first = component[0]
        return len(component) > 1 or first in reads[first] or stepwise(first)

    sorter.prepare()
    levels = []
    while sorter.is_active():
        ready = sorter.get_ready()
        sorter.done(*ready)
        level = Level([], [])
        for component in (components[number] for number in ready):
            if is_loop(component):
                level.loops.append(frozenset(component))
            else:
                level.at_once.append(component[0])
        levels.append(level)
    return levels


def ranks_of(levels: Iterable[Level]) -> Ranks:
    """The rank of each composite of these levels."""
    ranks: Ranks = {}
    for number, level in enumerate(levels):
        ranks.update((ref, Rank(number)) for ref in level.at_once)
        for members in level.loops:
            loop = Loop(min(members), members)
            ranks.update((ref, Rank(number, loop)) for ref in members)
    return ranks


def plan_of(reachable: set[StreamRef], ranks: Mapping[StreamRef, Rank]) -> Plan:
    """The plan for these composites. A loop is in it if any of its members is reached."""
    levels: dict[int, Level] = {}
    loops: set[StreamRef] = set()
    for ref in reachable:
        number, loop = ranks[ref]
        level = levels.get(number)
        if level is None:
            level = levels[number] = Level([], [])
        if loop is None:
            level.at_once.append(ref)
        elif loop.first not in loops:
            loops.add(loop.first)
            level.loops.append(loop.members)
    return Plan(reachable, [levels[number] for number in sorted(levels)])
