"""How far the nodes of a graph are from some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

FURTHEST = 1_000
"""Steps. Each may cost a question to the store, and whoever makes a long chain would make
others wait: a thousand are half a second."""


class Reached(NamedTuple):
    """Nodes with their distances in steps, the nearest first."""

    distances: dict[str, int]
    complete: bool
    """whether these are all that can be reached"""


def reach(
    start: Iterable[str],
    neighbours: Callable[[Sequence[str]], Iterable[str]],
    most: int,
    furthest: int = FURTHEST,
) -> Reached:
    """Return the nodes that can be reached from these: the nearest `most`, as far as `furthest`
    steps.

    `neighbours` tells to which nodes one step leads from any of those it is given, in any
    order. It is asked once a step, and may leave out what is beyond `most` nodes.
    """
    found = dict.fromkeys(list(dict.fromkeys(start))[:most], 0)
    frontier: Sequence[str] = list(found)
    distance = 0
    while frontier and len(found) < most and distance < furthest:
        distance += 1
        further = dict.fromkeys(each for each in neighbours(frontier) if each not in found)
        frontier = list(further)[: most - len(found)]
        found |= dict.fromkeys(frontier, distance)
    return Reached(found, not frontier)
