"""Which components are to move so that no partition has more to do than it must."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

LEAST_GAIN = 0.05
"""Of what partitions do in the mean: a busiest one that is nearer to it is left alone, and nothing
moves for less."""

MOVES = 20
MOST_MOVES = 100
"""At once: each is a change like any other, and others' changes wait for it."""


class Part(NamedTuple):
    """What moves as one: a component, or what has come apart from it."""

    tenant: int
    member: str
    """one of its Service Objects, by which it is found"""
    members: int
    partition: int
    load: int
    """microseconds of work in the time that was measured"""


class Move(NamedTuple):
    """A part and where it goes."""

    part: Part
    to_partition: int


class Plan(NamedTuple):
    """The moves, in order, and microseconds of work by partition before and after them."""

    moves: tuple[Move, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


def apart(members: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Return the members by what hangs together by these edges, in the order of the first ones.

    An edge to who is no member joins nothing.
    """
    leader = {each: each for each in members}

    def find(each: str) -> str:
        while leader[each] != each:
            leader[each] = leader[leader[each]]
            each = leader[each]
        return each

    for one, other in edges:
        if one in leader and other in leader:
            leader[find(one)] = find(other)
    pieces: defaultdict[str, list[str]] = defaultdict(list)
    for each in leader:
        pieces[find(each)].append(each)
    return [tuple(each) for each in pieces.values()]


def plan(loads: Mapping[int, int], parts: Sequence[Part], partitions: int, most: int) -> Plan:
    """Return at most so many moves, each of which makes less of what the busiest has to do.

    `loads` are what partitions do in all, `parts` what may move of that. From the busiest goes to
    the idlest what comes nearest to half of what lies between them; where nothing of the busiest
    may go with a gain, that is all there is.
    """
    before = tuple(loads.get(each, 0) for each in range(partitions))
    after, moves = list(before), list[Move]()
    there: defaultdict[int, list[Part]] = defaultdict(list)
    for each in parts:
        there[each.partition].append(each)
    least = LEAST_GAIN * sum(before) / max(1, partitions)
    while len(moves) < most:
        busiest = max(range(partitions), key=lambda each: (after[each], -each))
        idlest = min(range(partitions), key=lambda each: (after[each], each))
        gap = after[busiest] - after[idlest]
        gain, part = _best(there[busiest], gap)
        if part is None or gain <= 0 or gain < least:
            break
        there[busiest].remove(part)
        after[busiest] -= part.load
        after[idlest] += part.load
        moves.append(Move(part, idlest))
    return Plan(tuple(moves), before, tuple(after))


def _best(parts: Sequence[Part], gap: int) -> tuple[int, Part | None]:
    """Return which one brings most, by how much the busier of the two has less then."""
    found = max(parts, key=lambda each: min(each.load, gap - each.load), default=None)
    return (0, None) if found is None else (min(found.load, gap - found.load), found)
