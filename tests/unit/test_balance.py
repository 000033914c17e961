"""What moves so that partitions have as much to do as each other."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain.balance import Move, Part, apart, plan


def parts(*loads: tuple[int, int]) -> list[Part]:
    """Parts by partition and load."""
    return [Part(1, f"so{n}", 1, *each) for n, each in enumerate(loads)]


def summed(some: list[Part]) -> Counter[int]:
    found: Counter[int] = Counter()
    for each in some:
        found[each.partition] += each.load
    return found


def test_half_of_what_lies_between_them_moves_to_a_partition_that_is_new() -> None:
    some = parts((0, 10), (0, 20), (0, 30))
    found = plan(summed(some), some, 2, 20)

    assert found.moves == (Move(some[2], 1),)
    assert (found.before, found.after) == ((60, 0), (30, 30))


def test_what_is_alone_stays() -> None:
    """It would only be busy elsewhere."""
    some = parts((0, 60), (1, 1))
    assert plan(summed(some), some, 3, 20).moves == ()


def test_what_moves_with_too_little_gain_stays() -> None:
    some = parts((0, 500), (0, 501), (1, 500), (1, 500), (0, 1))
    assert plan(summed(some), some, 2, 20).moves == ()


def test_without_work_nothing_moves() -> None:
    some = parts((0, 0), (0, 0))
    assert plan({0: 0}, some, 4, 20) == ((), (0, 0, 0, 0), (0, 0, 0, 0))


many = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 10**6)), max_size=30).map(
    lambda loads: parts(*loads)
)


@given(many, st.integers(0, 40))
def test_every_move_makes_the_busiest_of_both_less_busy(some: list[Part], most: int) -> None:
    """And as many as are allowed, each from where it is, each once; all work is somewhere."""
    loads = summed(some)
    found = plan(loads, some, 5, most)

    now = [loads[each] for each in range(5)]
    for part, to in found.moves:
        assert now[part.partition] == max(now)
        assert max(now[part.partition] - part.load, now[to] + part.load) < now[part.partition]
        now[part.partition] -= part.load
        now[to] += part.load
    assert tuple(now) == found.after
    assert len(found.moves) == len({each.part.member for each in found.moves}) <= most


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), max_size=12))
def test_pieces_are_what_hangs_together(edges: list[tuple[int, int]]) -> None:
    """As going from one to the other says; edges to who is no member count for nothing."""
    named = [(str(one), str(other)) for one, other in edges]
    pieces = apart(map(str, range(10)), named)

    assert sorted(each for piece in pieces for each in piece) == [*map(str, range(10))]
    for piece in pieces:
        reached, new = {piece[0]}, {piece[0]}
        while new:
            near = {b for a, b in named if a in new} | {a for a, b in named if b in new}
            new = {each for each in near if int(each) < 10} - reached
            reached |= new
        assert reached == set(piece)
