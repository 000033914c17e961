"""How components join, and where new ones go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain.placement import Joined, Member, join, least_loaded


def test_there_is_nothing_to_join() -> None:
    assert join([]) is None


def test_the_smaller_component_moves_to_the_larger() -> None:
    small, large = Member("a", "a", 0), [Member("b", "b", 1), Member("c", "b", 1)]

    assert join([small, *large]) == Joined("b", 1, ((0, ("a",)),))


def test_of_equally_large_ones_the_first_stays() -> None:
    assert join([Member("a", "a", 3), Member("b", "b", 1)]) == Joined("a", 3, ((1, ("b",)),))


def test_who_is_in_the_same_partition_does_not_move() -> None:
    assert join([Member("a", "a", 0), Member("b", "b", 0)]) == Joined("a", 0, ())


MEMBERS = st.lists(st.integers(0, 3), max_size=12).map(
    lambda components: [
        Member(f"so{n}", f"c{component}", component % 3) for n, component in enumerate(components)
    ]
)


@given(MEMBERS)
def test_after_a_join_all_are_in_one_partition(members: list[Member]) -> None:
    joined = join(members)
    if joined is None:
        assert members == []
        return

    moved = {id_: at for at, ids in joined.moves for id_ in ids}
    assert moved == {
        each.id: each.partition for each in members if each.partition != joined.partition
    }
    staying = [each for each in members if each.component == joined.component]
    assert all(each.partition == joined.partition for each in staying)
    assert all(
        len(staying) >= sum(each.component == other.component for each in members)
        for other in members
    )


def test_the_partition_with_the_fewest_is_chosen_and_the_first_of_those() -> None:
    assert least_loaded({}, 3) == 0
    assert least_loaded({0: 1}, 3) == 1
    assert least_loaded({0: 2, 1: 1, 2: 1}, 3) == 1
    assert least_loaded({0: 5}, 1) == 0
