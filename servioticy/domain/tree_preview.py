"""Execution trees before any data flows: whom an update of a stream wakes, and in which order.

Pure: over the graph of subscriptions alone. What scripts will filter is not known here, so
a tree holds every composite that may compute; each is taken to emit once an update, as it
does unless the clock of an input is ahead of the origin's.

A tree is of one tenant. What it makes on streams that another tenant reads grows a tree there, of
its own: no path of the one is compared with a path of the other, and nothing settles over both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from servioticy.domain.borders import MAX_BORDERS
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
    """how many updates of its tenant's tree get here; the first computes"""
    only_read: tuple[str, ...]
    """inputs that do not change in this tree"""
    is_diamond: bool
    borders: int = 0
    """between tenants, on the way here; each is one more way through the log"""
    is_again: bool = False
    """whether another tree gets here, too, over fewer borders: then this one is stale as a rule"""


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
        return sum(not node.is_again for node in self.nodes)

    @property
    def most_computations(self) -> int:
        """How many there may be: one an arrival, where scripts filter all but the last."""
        return sum(node.arrivals for node in self.nodes)


def grow(origin: StreamRef, graph: Graph, most: int | None = None) -> Tree:
    """The tree of an update of this stream, level by level as the engine takes it.

    With those that grow from it behind borders, each where its composites are as deep: in a level
    those behind fewer borders come first. It has at most so many composites, the nearest ones.
    """
    return _Growing(origin, graph, most).grown()


@dataclass(slots=True)
class _Own:
    """A tree of one tenant, as it grows."""

    tenant: int
    borders: int
    entries: dict[StreamRef, int]
    """what comes into it, and how deep that was made"""
    levels: dict[int, list[StreamRef]] = field(default_factory=dict)
    arrivals: dict[StreamRef, list[tuple[StreamRef, int]]] = field(default_factory=dict)
    again: set[StreamRef] = field(default_factory=set)

    @property
    def made(self) -> Mapping[StreamRef, int]:
        """What others may read of it, and how deep each is made."""
        at_first = self.entries if not self.borders else {}
        made = {
            ref: depth
            for depth, level in self.levels.items()
            for ref in level
            if ref not in self.again
        }
        return at_first | made


class _Growing:
    """Grows the trees of one update, those behind fewer borders first."""

    def __init__(self, origin: StreamRef, graph: Graph, most: int | None) -> None:
        self._origin, self._graph = origin, graph
        self._left = most
        self._complete = True
        self._done = {origin}
        """what has this timestamp already"""
        self._loops = _cycles(origin, graph)
        self._loop_of = {ref: loop for loop in self._loops for ref in loop}

    def grown(self) -> Tree:
        levels: dict[int, list[Node]] = {}
        waiting = deque(self._first())
        while waiting:
            tree = waiting.popleft()
            self._grow(tree)
            in_tree = tree.entries.keys() | tree.arrivals.keys()
            for depth, level in tree.levels.items():
                nodes = [self._node(tree, depth, ref, in_tree) for ref in level]
                levels.setdefault(depth, []).extend(nodes)
            if tree.borders < MAX_BORDERS:
                waiting += self._behind(tree)
        inorder = tuple(tuple(levels[depth]) for depth in sorted(levels))
        return Tree(self._origin, inorder, self._loops, self._complete)

    def _first(self) -> Iterator[_Own]:
        if self._graph.knows(self._origin):
            yield _Own(self._tenant(self._origin), 0, {self._origin: 0})

    def _behind(self, tree: _Own) -> Iterator[_Own]:
        """Yield what grows at other tenants from what the tree has made."""
        entries: dict[int, dict[StreamRef, int]] = {}
        for source, depth in tree.made.items():
            for composite, _ in self._graph.wakes(source):
                tenant = self._tenant(composite)
                if tenant != tree.tenant:
                    entries.setdefault(tenant, {})[source] = depth
        for tenant, theirs in entries.items():
            yield _Own(tenant, tree.borders + 1, theirs)

    def _grow(self, tree: _Own) -> None:
        entering: dict[int, list[StreamRef]] = {}
        for source, depth in tree.entries.items():
            entering.setdefault(depth, []).append(source)
        depth, frontier = 0, entering.pop(0, [])
        while frontier or entering:
            depth += 1
            level = self._woken(tree, frontier)
            tree.again.update(ref for ref in level if self._is_stale(ref))
            frontier = entering.pop(depth, [])
            frontier += [ref for ref in level if ref not in tree.again]
            if level:
                tree.levels[depth] = level
        self._done.update(tree.arrivals)

    def _woken(self, tree: _Own, frontier: list[StreamRef]) -> list[StreamRef]:
        """Return whom these wake that nothing has come to in the tree, as far as there is room."""
        reached = []
        for source in frontier:
            for composite, place in self._graph.wakes(source):
                if self._tenant(composite) != tree.tenant:
                    continue
                if composite == self._origin and not tree.borders:
                    continue  # it has this timestamp already
                if composite not in tree.arrivals:
                    if self._left == 0:
                        self._complete = False
                        continue
                    self._left = None if self._left is None else self._left - 1
                    reached.append(composite)
                tree.arrivals.setdefault(composite, []).append((source, place))
        return reached

    def _is_stale(self, ref: StreamRef) -> bool:
        """Tell whether another tree has made an update of it that has this timestamp."""
        return ref in self._done and self._graph.composite(ref).options.staleness == "output"

    def _tenant(self, ref: StreamRef) -> int:
        return self._graph.stream(ref).tenant

    def _node(
        self, tree: _Own, depth: int, ref: StreamRef, in_tree: Collection[StreamRef]
    ) -> Node:
        composite = self._graph.composite(ref)
        arrivals = tree.arrivals[ref]
        source, place = arrivals[0]
        around = self._loop_of.get(ref, ())
        only_read = tuple(
            each.name
            for number, each in enumerate(composite.inputs)
            if number != composite.own and not any(member in in_tree for member in each.members)
        )
        return Node(
            ref,
            depth,
            source,
            composite.inputs[place].name,
            len(arrivals),
            only_read,
            is_diamond=sum(each not in around for each, _ in arrivals) > 1,
            borders=tree.borders,
            is_again=ref in tree.again,
        )


def _cycles(origin: StreamRef, graph: Graph) -> tuple[tuple[StreamRef, ...], ...]:
    """The streams that wake each other in a circle, sorted by their names."""
    following = {
        ref: {wake.composite for wake in graph.wakes(ref)}
        for ref in {origin} | graph.reachable([origin])
    }
    components = strongly_connected_components(following)
    return tuple(sorted(tuple(sorted(each)) for each in components if len(each) > 1))
