"""The strongly connected components of a digraph: what can be reached from each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

Node = TypeVar("Node")

PAUSE = 1000
"""So many edges are followed, about half a millisecond, until who searches may pause."""


def strongly_connected_components(successors: Mapping[Node, Iterable[Node]]) -> list[list[Node]]:
    """Return the components, each after all those that it leads to."""
    return [each for each in searching(successors) if each]


def searching(successors: Mapping[Node, Iterable[Node]]) -> Iterator[list[Node]]:
    """Yield the components, each after all those that it leads to; an empty list is a pause.

    `successors` names every node and where its edges lead to. The algorithm is Tarjan's,
    without recursion; it takes time linear in the number of nodes and edges.
    """
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    stacked: set[Node] = set()
    steps = 0
    for root in successors:
        if root in index:
            continue
        path = [(root, iter(successors[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        stacked.add(root)
        while path:
            steps += 1
            if not steps % PAUSE:
                yield []
            node, following = path[-1]
            child = next(following, None)
            if child is None:
                path.pop()
                if path:
                    parent = path[-1][0]
                    if low[node] < low[parent]:
                        low[parent] = low[node]
                if low[node] == index[node]:
                    found = _pop_until(stack, node)
                    stacked.difference_update(found)
                    yield found
            elif child not in index:
                index[child] = low[child] = len(index)
                stack.append(child)
                stacked.add(child)
                path.append((child, iter(successors[child])))
            elif child in stacked and index[child] < low[node]:
                low[node] = index[child]


def _pop_until(stack: list[Node], node: Node) -> list[Node]:
    """Take the node from the stack with all that lies on it; it is near the top."""
    popped = [stack.pop()]
    while popped[-1] != node:
        popped.append(stack.pop())
    return popped[::-1]
