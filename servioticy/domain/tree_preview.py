"""Execution trees before any data flows: whom an update of a stream wakes, and in which order.

Pure: over the graph of subscriptions alone. What scripts will filter is not known here, so
a tree holds every composite that may compute; each is taken to emit once an update, as it
does unless the clock of an input is ahead of the origin's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from servioticy.domain.graph import Graph
from servioticy.domain.model import StreamRef
from servioticy.domain.strong_components import strongly_connected_components


@dataclass(frozen=True, slots=True)
class Node:
    """A composite in a tree, where its first trigger finds it."""

    stream: StreamRef
    depth: int
    source: StreamRef
    """the stream whose update gets here first"""
    input: str
    """the name under which it reads that"""
    arrivals: int
    """how many updates of the tree get here; the first computes"""
    only_read: tuple[str, ...]
    """inputs that do not change in this tree"""
    is_diamond: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """What an update of one stream makes of the graph."""

    origin: StreamRef
    levels: tuple[tuple[Node, ...], ...]
    cycles: tuple[tuple[StreamRef, ...], ...]
    complete: bool = True
    """whether these are all composites that it wakes"""

    @property
    def nodes(self) -> Iterator[Node]:
        """Every composite, in the order of first arrival."""
        return (node for level in self.levels for node in level)

    @property
    def depth(self) -> int:
        """Hops from the update to the last computation."""
        return len(self.levels)

    @property
    def computations(self) -> int:
        """How many there are where all that compute emit."""
        return sum(1 for _ in self.nodes)

    @property
    def most_computations(self) -> int:
        """How many there may be: one an arrival, where scripts filter all but the last."""
        return sum(node.arrivals for node in self.nodes)


def grow(origin: StreamRef, graph: Graph, most: int | None = None) -> Tree:
    """The tree of an update of this stream, level by level as the engine takes it.

    It has at most so many composites, the nearest ones.
    """
    complete = True
    arrivals: dict[StreamRef, list[tuple[StreamRef, int]]] = {}
    levels: list[list[StreamRef]] = []
    frontier = [origin]
    while frontier:
        reached: list[StreamRef] = []
        for source in frontier:
            for composite, place in graph.wakes(source):
                if composite == origin:
                    continue  # it has this timestamp already
                if composite not in arrivals:
                    if len(arrivals) == most:
                        complete = False
                        continue
                    reached.append(composite)
                arrivals.setdefault(composite, []).append((source, place))
        levels.append(reached)
        frontier = reached
    loops = _cycles(origin, graph)
    loop_of = {ref: loop for loop in loops for ref in loop}
    in_tree = {origin, *arrivals}
    return Tree(
        origin,
        tuple(
            tuple(_node(ref, depth, arrivals[ref], graph, in_tree, loop_of) for ref in level)
            for depth, level in enumerate(levels, start=1)
            if level
        ),
        loops,
        complete,
    )


def _node(
    ref: StreamRef,
    depth: int,
    arrivals: list[tuple[StreamRef, int]],
    graph: Graph,
    in_tree: set[StreamRef],
    loop_of: dict[StreamRef, tuple[StreamRef, ...]],
) -> Node:
    composite = graph.composite(ref)
    inputs, own = composite.inputs, composite.own
    source, place = arrivals[0]
    only_read = tuple(
        each.name
        for number, each in enumerate(inputs)
        if number != own and in_tree.isdisjoint(each.members)
    )
    around = loop_of.get(ref, ())
    from_outside = [each for each, _ in arrivals if each not in around]
    return Node(
        ref, depth, source, inputs[place].name, len(arrivals), only_read, len(from_outside) > 1
    )


def _cycles(origin: StreamRef, graph: Graph) -> tuple[tuple[StreamRef, ...], ...]:
    """The streams that wake each other in a circle, sorted by their names."""
    following = {
        ref: {wake.composite for wake in graph.wakes(ref)}
        for ref in {origin} | graph.reachable([origin])
    }
    components = strongly_connected_components(following)
    return tuple(sorted(tuple(sorted(each)) for each in components if len(each) > 1))
