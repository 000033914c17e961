"""What a tenant should know about the execution trees that a document is part of.

Streams that nothing can trigger, diamonds, cycles, trees that are deep or wide, and what crosses
borders between tenants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from servioticy.domain.borders import MAX_BORDERS
from servioticy.domain.graph import Graph
from servioticy.domain.model import Definition, StreamRef
from servioticy.domain.tree_preview import Tree, grow

DEEP = 20
WIDE = 1000
MAX_COMPUTATIONS = 50_000
"""Computations in all the trees that are grown for one document."""
MAX_NAMED = 20
"""Streams of a cycle that are called by their names."""
MAX_ORIGINS = 200
"""How many streams from afar are followed to the streams of a document."""


def findings(
    definition: Definition,
    graph: Graph,
    simple_streams: Iterable[StreamRef],
    name: Callable[[StreamRef], str] = str,
) -> list[str]:
    """Return the findings about one document, each a sentence.

    `graph` has the document and what it is computed from, `simple_streams` all streams
    that devices send to it. `name` says how to call a stream, which may be another's.
    """
    simple = list(dict.fromkeys(simple_streams))
    own = [each.ref for each in definition.streams]
    others = sorted(set(simple) - set(own))[:MAX_ORIGINS]
    trees = _grown([*own, *others], graph)
    composites = [each.ref for each in definition.streams if each.composite is not None]
    return [
        *_never(composites, graph.reachable(simple)),
        *_diamonds(set(composites), trees, name),
        *_again(set(composites), trees, name),
        *_loops(set(own), trees, graph, name),
        *_deep(set(composites), trees, name),
        *_wide(trees[: len(own)]),
        *_from_outside(composites, graph, name),
        *_not_grown(len(trees), len(own) + len(others)),
    ]


def _grown(origins: Iterable[StreamRef], graph: Graph) -> list[Tree]:
    """Return the trees of these streams, as many as the number of computations allows."""
    trees: list[Tree] = []
    left = MAX_COMPUTATIONS
    for origin in origins:
        if left < 0:
            break
        trees.append(grow(origin, graph))
        left -= 1 + trees[-1].most_computations
    return trees


def _not_grown(grown: int, origins: int) -> Iterator[str]:
    if grown < origins:
        yield f"only {grown} of {origins} execution trees were looked at: they are large"


def _never(composites: Iterable[StreamRef], reachable: set[StreamRef]) -> Iterator[str]:
    for ref in composites:
        if ref not in reachable:
            yield f"stream {ref.stream}: nothing can trigger it, as no update reaches its inputs"


def _diamonds(
    own: set[StreamRef], trees: Iterable[Tree], name: Callable[[StreamRef], str]
) -> Iterator[str]:
    """At most one for each composite: every stream above a diamond leads to the same one."""
    for tree in trees:
        for node in tree.nodes:
            if node.is_diamond and node.stream in own:
                own = own - {node.stream}
                yield (
                    f"stream {node.stream.stream}: an update of {name(tree.origin)} reaches it by "
                    f"{node.arrivals} paths (diamond); only the first to arrive computes"
                )


def _again(
    own: set[StreamRef], trees: Iterable[Tree], name: Callable[[StreamRef], str]
) -> Iterator[str]:
    """Of each composite that several trees of one update get to, but for those of its own loop."""
    for tree in trees:
        around = {ref: loop for loop in tree.cycles for ref in loop}
        for node in tree.nodes:
            ref = node.stream
            if node.is_again and ref in own and node.source not in around.get(ref, ()):
                own = own - {ref}
                yield (
                    f"stream {ref.stream}: an update of {name(tree.origin)} also reaches it over "
                    "streams of other tenants, later and in a tree of its own: that is stale as a "
                    'rule, and `diamonds: "settle"` does not wait for it'
                )


def _loops(
    own: set[StreamRef],
    trees: Iterable[Tree],
    graph: Graph,
    name: Callable[[StreamRef], str],
) -> Iterator[str]:
    seen: set[frozenset[StreamRef]] = set()
    for tree in trees:
        for loop in tree.cycles:
            if not own.isdisjoint(loop) and frozenset(loop) not in seen:
                seen.add(frozenset(loop))
                tenants = {graph.stream(ref).tenant for ref in loop}
                borders = f", and behind {MAX_BORDERS} borders between tenants at the latest"
                yield (
                    f"streams {_some(sorted({name(ref) for ref in loop}))}: a cycle; it ends "
                    f"where an update is not newer than what it triggers"
                    f"{borders if len(tenants) > 1 else ''}"
                )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


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


def _from_outside(
    composites: Iterable[StreamRef], graph: Graph, name: Callable[[StreamRef], str]
) -> Iterator[str]:
    """At most one for a document."""
    read: dict[str, None] = {}
    reading: dict[str, None] = {}
    for ref in composites:
        for each in graph.composite(ref).inputs:
            for member in each.members:
                if graph.knows(member) and graph.stream(member).tenant != graph.stream(ref).tenant:
                    read[name(member)] = reading[ref.stream] = None
    if read:
        some, what = _some(sorted(reading)), _some(sorted(read))
        yield (
            f"stream{'s' if len(reading) > 1 else ''} {some}: what is read of other tenants "
            f"({what}) comes over a border, one hop of the log later; reading what one has "
            "written does not wait for that"
        )
