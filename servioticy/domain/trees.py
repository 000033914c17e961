"""Execution trees before any data flows: whom an update of a stream wakes, and in which order.

Pure: over the graph of subscriptions alone. What scripts will filter is not known here, so
a tree holds every composite that may compute; each is taken to emit once an update, as it
does unless the clock of an input is ahead of the origin's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from servioticy.domain.graph import Graph, knotted
from servioticy.domain.model import Definition, StreamRef

DEEP = 20
MOST_LOOKED_AT = 50_000
"""Computations in all the trees that are grown to find what a tenant should know."""
WIDE = 1000
MOST_NAMED = 20
"""Streams of a cycle that are called by their names."""
MOST_ORIGINS = 200
"""How many streams from afar are followed to the streams of a document."""


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
    inputs = graph.composite(ref)[2].inputs
    own = graph.composite(ref)[2].own
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
    return tuple(sorted(tuple(sorted(knot)) for knot in knotted(following) if len(knot) > 1))


def findings(
    definition: Definition,
    graph: Graph,
    simple_streams: Iterable[StreamRef],
    name: Callable[[StreamRef], str] = str,
) -> list[str]:
    """What a tenant should know about the trees that this document is part of.

    `graph` has the document and what it is computed from, `simple_streams` all streams
    that devices send to it. `name` says how to call a stream, which may be another's.
    """
    simple = list(dict.fromkeys(simple_streams))
    own = [each.ref for each in definition.streams]
    others = sorted(set(simple) - set(own))[:MOST_ORIGINS]
    trees = _grown([*own, *others], graph)
    composites = [each.ref for each in definition.streams if each.composite is not None]
    return [
        *_never(composites, graph.reachable(simple)),
        *_diamonds(set(composites), trees, name),
        *_loops(set(own), trees, name),
        *_deep(set(composites), trees, name),
        *_wide(trees[: len(own)]),
        *_unseen(len(trees), len(own) + len(others)),
    ]


def _grown(origins: Iterable[StreamRef], graph: Graph) -> list[Tree]:
    """The trees of as many of them as are looked at."""
    trees: list[Tree] = []
    left = MOST_LOOKED_AT
    for origin in origins:
        if left < 0:
            break
        trees.append(grow(origin, graph))
        left -= 1 + trees[-1].most_computations
    return trees


def _unseen(seen: int, origins: int) -> Iterator[str]:
    if seen < origins:
        yield f"only {seen} of {origins} execution trees were looked at: they are large"


def _never(composites: Iterable[StreamRef], reachable: set[StreamRef]) -> Iterator[str]:
    for ref in composites:
        if ref not in reachable:
            yield f"stream {ref.stream}: nothing can trigger it, as no update reaches its inputs"


def _diamonds(
    own: set[StreamRef], trees: Iterable[Tree], name: Callable[[StreamRef], str]
) -> Iterator[str]:
    """One a composite: the same diamond hangs from every stream above it."""
    for tree in trees:
        for node in tree.nodes:
            if node.is_diamond and node.stream in own:
                own = own - {node.stream}
                yield (
                    f"stream {node.stream.stream}: an update of {name(tree.origin)} reaches it by "
                    f"{node.arrivals} paths (diamond); only the first to arrive computes"
                )


def _loops(
    own: set[StreamRef], trees: Iterable[Tree], name: Callable[[StreamRef], str]
) -> Iterator[str]:
    seen: set[frozenset[StreamRef]] = set()
    for tree in trees:
        for loop in tree.cycles:
            if not own.isdisjoint(loop) and frozenset(loop) not in seen:
                seen.add(frozenset(loop))
                yield (
                    f"streams {_some(sorted({name(ref) for ref in loop}))}: a cycle; it ends "
                    "where an update is not newer than what it triggers"
                )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _deep(
    own: set[StreamRef], trees: Iterable[Tree], name: Callable[[StreamRef], str]
) -> Iterator[str]:
    deepest: dict[StreamRef, tuple[int, StreamRef]] = {}
    for tree in trees:
        for node in tree.nodes:
            if node.stream in own and node.depth > deepest.get(node.stream, (DEEP,))[0]:
                deepest[node.stream] = (node.depth, tree.origin)
    for ref, (depth, origin) in deepest.items():
        yield f"stream {ref.stream}: {depth} computations deep, from {name(origin)}"


def _wide(trees: Iterable[Tree]) -> Iterator[str]:
    for tree in trees:
        if tree.most_computations > WIDE:
            yield (
                f"stream {tree.origin.stream}: one update makes up to "
                f"{tree.most_computations} computations (fan-out)"
            )
