"""Random stream topologies with the numbers of Table 1 of the paper.

A topology is a digraph without cycles: sources are what devices send, every other node is
a composite stream that sums its inputs. The paper gives the numbers, not the edges; these
are drawn with a seed, so that everybody measures the same graphs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

Edge = tuple[int, int]

ATTEMPTS = 1000


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of the table."""

    nodes: int
    edges: int
    sources: int
    sinks: int
    max_in: int
    max_out: int


TABLE_1 = {
    1: Numbers(21, 30, 11, 4, 9, 4),
    2: Numbers(19, 37, 9, 7, 8, 7),
    3: Numbers(42, 149, 17, 15, 14, 15),
    4: Numbers(43, 151, 18, 15, 16, 15),
    5: Numbers(80, 423, 30, 25, 29, 25),
    6: Numbers(74, 458, 24, 28, 24, 28),
}


@dataclass(frozen=True, slots=True)
class Topology:
    """Nodes 0, 1, ... in topological order: sources first, sinks last."""

    numbers: Numbers
    edges: frozenset[Edge]

    def inputs(self, node: int) -> list[int]:
        """Return what a composite reads."""
        return sorted(tail for tail, head in self.edges if head == node)

    def outputs(self, node: int) -> list[int]:
        """Return who reads a node."""
        return sorted(head for tail, head in self.edges if tail == node)

    def reachable(self, node: int) -> set[int]:
        """Return every composite that an update of this node makes compute."""
        found: set[int] = set()
        waiting = [node]
        while waiting:
            new = set(self.outputs(waiting.pop())) - found
            found |= new
            waiting += new
        return found


def topology(numbers: Numbers, seed: int = 0) -> Topology:
    """Return a connected topology with exactly these numbers, always the same for a seed."""
    for attempt in range(ATTEMPTS):
        drawn = _Drawing(numbers, random.Random(f"{seed}/{attempt}")).edges()  # noqa: S311
        if drawn is not None:
            return Topology(numbers, frozenset(drawn))
    raise ValueError(f"no topology has {numbers}")


class _Drawing:
    """One attempt: what each node must have, then what joins the parts, then the rest."""

    def __init__(self, numbers: Numbers, chance: random.Random) -> None:
        self._numbers = numbers
        self._chance = chance
        self._edges: set[Edge] = set()
        self._in = [0] * numbers.nodes
        self._out = [0] * numbers.nodes

    def edges(self) -> set[Edge] | None:
        """Return the edges, or None where it did not come out."""
        numbers, nodes = self._numbers, range(self._numbers.nodes)
        composites, inner = nodes[numbers.sources :], nodes[: numbers.nodes - numbers.sinks]
        fan_in = self._chance.choice(nodes[numbers.nodes - numbers.sinks :])
        self._add(numbers.max_in, ((tail, fan_in) for tail in inner))
        fan_out = self._chance.choice(nodes[: numbers.sources])
        self._add(numbers.max_out - self._out[fan_out], ((fan_out, head) for head in composites))
        for node in inner:
            if not self._out[node]:
                self._add(1, ((node, head) for head in composites if head > node))
        for node in composites:
            if not self._in[node]:
                self._add(1, ((tail, node) for tail in inner if tail < node))
        while len(parts := _parts(numbers.nodes, self._edges)) > 1:
            part = self._chance.choice(parts)
            pairs = ((a, b) for a in inner for b in composites if a < b)
            if not self._add(1, ((a, b) for a, b in pairs if (a in part) != (b in part))):
                return None
        missing = numbers.edges - len(self._edges)
        self._add(missing, ((a, b) for a in inner for b in composites if a < b))
        exact = (
            len(self._edges) == numbers.edges
            and max(self._in) == numbers.max_in
            and max(self._out) == numbers.max_out
        )
        return self._edges if exact else None

    def _add(self, count: int, candidates: Iterable[Edge]) -> int:
        """Add edges drawn from these within the degrees allowed; how many it were."""
        added = 0
        drawn = list(candidates)
        self._chance.shuffle(drawn)
        for tail, head in drawn:
            if added >= count:
                break
            allowed = (
                self._out[tail] < self._numbers.max_out and self._in[head] < self._numbers.max_in
            )
            if allowed and (tail, head) not in self._edges:
                self._edges.add((tail, head))
                self._out[tail] += 1
                self._in[head] += 1
                added += 1
        return added


def _parts(nodes: int, edges: set[Edge]) -> list[set[int]]:
    """Return the parts that no edge connects."""
    neighbours: dict[int, set[int]] = {node: set() for node in range(nodes)}
    for tail, head in edges:
        neighbours[tail].add(head)
        neighbours[head].add(tail)
    parts: list[set[int]] = []
    left = set(neighbours)
    while left:
        part, waiting = set(), [left.pop()]
        while waiting:
            node = waiting.pop()
            part.add(node)
            waiting += neighbours[node] - part
        parts.append(part)
        left -= part
    return parts
