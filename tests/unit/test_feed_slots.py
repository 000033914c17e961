"""Which process feeds what, where several deliver."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain.feed_slots import SLOTS, missing, of_tenant, share, slot_of, surplus


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(1, 5))
def test_whoever_comes_or_goes_all_have_about_as_many(steps: list[int], alive: int) -> None:
    """Once each has looked some times; each slot is one's at a time, and none is nobody's."""
    held: list[set[int]] = [set() for _ in range(5)]

    def look(process: int, processes: int) -> None:
        others = set().union(*(each for n, each in enumerate(held) if n != process))
        assert not others & held[process]
        most = share(SLOTS, processes)
        held[process] |= set(missing(held[process], others, SLOTS, most))
        held[process] -= surplus(held[process], most)

    for each in steps:  # five are there, in any order
        look(each, 5)
    for gone in range(alive, 5):
        held[gone].clear()
    for _ in range(3):
        for each in range(alive):
            look(each, alive)

    numbers = [len(each) for each in held[:alive]]
    assert sum(numbers) == SLOTS
    assert max(numbers) <= share(SLOTS, alive)


def test_a_subscription_has_one_slot_for_ever() -> None:
    """Another release has to find the same, as both may deliver while one takes over."""
    assert [slot_of(each, SLOTS) for each in ("a", "b", "actions-7")] == [3, 57, 62]
    assert [slot_of(of_tenant(each), SLOTS) for each in (1, 2, 3)] == [55, 13, 27]
