"""Strongly connected components, against what reaching each other means."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain.strong_components import strongly_connected_components

NODES = st.integers(0, 7)


def reachable(start: int, successors: dict[int, set[int]]) -> set[int]:
    found, waiting = {start}, [start]
    while waiting:
        for each in successors[waiting.pop()] - found:
            found.add(each)
            waiting.append(each)
    return found


@given(st.sets(st.tuples(NODES, NODES)))
def test_components_are_what_reaches_each_other(edges: set[tuple[int, int]]) -> None:
    """Each comes after all that it leads to."""
    successors = {node: {end for start, end in edges if start == node} for node in range(8)}
    reached = {node: reachable(node, successors) for node in successors}

    components = strongly_connected_components(successors)

    assert sorted(node for each in components for node in each) == list(range(8))
    for number, component in enumerate(components):
        for node in component:
            both = {other for other in reached[node] if node in reached[other]}
            assert both == set(component)
            before = {each for earlier in components[:number] for each in earlier}
            assert reached[node] <= before | set(component)


def test_a_deep_digraph_needs_no_recursion() -> None:
    successors = {node: {node + 1} for node in range(5000)} | {5000: {0}, 5001: set()}

    assert sorted(map(len, strongly_connected_components(successors))) == [1, 5001]
