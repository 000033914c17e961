"""What can be reached from somewhere, and in how many steps."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain.distances import reach

EDGES = st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=25)


class Graph:
    """Tells neighbours, and remembers how often it was asked."""

    def __init__(self, edges: set[tuple[int, int]]) -> None:
        self.edges = edges
        self.asked = 0

    def __call__(self, of: Sequence[str]) -> list[str]:
        self.asked += 1
        return [str(end) for start, end in self.edges if str(start) in of]


def slowly(edges: set[tuple[int, int]], start: int) -> dict[str, int]:
    """By definition: the least number of steps, found by taking ever more of them."""
    reached, found = {start}, {str(start): 0}
    for steps in range(1, 10):
        reached = {end for at, end in edges if at in reached}
        for each in reached:
            found.setdefault(str(each), steps)
    return found


@given(EDGES, st.integers(0, 8))
def test_each_has_the_length_of_the_shortest_way(edges: set[tuple[int, int]], start: int) -> None:
    assert reach([str(start)], Graph(edges), 99) == (slowly(edges, start), True)


@given(EDGES, st.integers(0, 8), st.integers(1, 9))
def test_of_too_many_the_nearest_are_found(
    edges: set[tuple[int, int]], start: int, most: int
) -> None:
    everything = slowly(edges, start)

    found, complete = reach([str(start)], Graph(edges), most)

    assert len(found) == min(most, len(everything))
    assert found.items() <= everything.items()
    assert sorted(found.values()) == sorted(everything.values())[:most]
    assert not complete or len(found) == len(everything)


def test_it_asks_once_a_distance_and_not_when_there_are_enough() -> None:
    chain = {(n, n + 1) for n in range(5)}
    whole, half = Graph(chain), Graph(chain)

    assert list(reach(["0"], whole, 99).distances) == ["0", "1", "2", "3", "4", "5"]
    assert whole.asked == 6
    assert list(reach(["0"], half, 3).distances) == ["0", "1", "2"]
    assert half.asked == 2


def test_it_goes_so_far_and_no_further() -> None:
    """Each step may cost a question to the store, and others' graphs may be long chains."""
    chain = Graph({(n, n + 1) for n in range(5)})

    assert reach(["0"], chain, 99, furthest=2) == ({"0": 0, "1": 1, "2": 2}, False)
    assert chain.asked == 2
    assert reach(["0"], chain, 99, furthest=6).complete


@pytest.mark.parametrize(("most", "found"), [(1, ["a"]), (2, ["a", "b"]), (9, ["a", "b"])])
def test_several_may_be_the_start(most: int, found: list[str]) -> None:
    assert list(reach(["a", "b", "a"], lambda _: [], most).distances) == found
