"""In which order a tree happens: updates that come from other regions have their places in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from listing_programs import ONE, TWO, grown, listing, placed
from sandbox_pools import a_pool
from sandbox_trees import a_call_of, an_event, kinds, values

from sandbox import SandboxPool
from sandbox.trees import Bounds, Node, Wake, Wiring


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    pool = a_pool(engine=request.param)
    yield pool
    pool.close()


CHAIN = Wiring(
    "chain",
    (
        Node((Wake(2, 1, 0), Wake(4, 2, 0)), name="source"),
        Node((Wake(1, 2, 1),), ONE, ((0,),)),
        Node((), listing(3), ((0,), (1,), (3,))),
        Node((Wake(0, 2, 2),)),
    ),
)


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        # 0 computes 1 at (2,), 2 at (4,) and, by 1, at (2, 1); all later ones are stale.
        (
            (1,),
            [
                "x",
                "x x other",
            ],
        ),
        ((3,), ["x", "x x other"]),
        ((5,), ["x", "x x -"]),
        ((2, 0), ["x", "x x -"]),
    ],
)
def test_what_comes_from_other_regions_comes_at_its_place(
    pool: SandboxPool, path: tuple[int, ...], seen: list[str]
) -> None:
    """Updates are taken by depth, and then by the numbers of the wakes on their way."""
    source, other = placed(0, "x", ()), placed(3, "other", path)

    found = grown(pool, a_call_of(CHAIN, [source, other]))

    assert values(found) == [seen]


def test_several_updates_from_other_regions_are_merged(pool: SandboxPool) -> None:
    """Each composite here tells what has come before its own place."""
    readers = [Node((), listing(4), ((0,), (4,), (5,), (6,)))] * 3
    nodes = (
        Node((Wake(2, 1, 0), Wake(4, 2, 0), Wake(6, 3, 0))),
        *readers,
        *[Node()] * 3,
    )
    events = [
        placed(0, "x", ()),
        placed(4, "a", (1,)),
        placed(5, "b", (3,)),
        placed(6, "c", (5,)),
        placed(4, "d", (7,)),
        placed(5, "e", (0, 1)),
    ]

    found = grown(pool, a_call_of(Wiring("merged", nodes), events, events[:1]))

    assert values(found)[0] == ["x a - -", "x a b -", "x a b c"]
    assert values(found)[1] == []  # of the same time, so stale
    later = placed(0, "y", (), at=6)
    again = grown(pool, a_call_of(Wiring("merged", nodes), events, [later]))
    assert values(again)[1] == ["y d e c"] * 3


def test_equal_depths_are_ordered_by_paths_and_not_by_numbers_of_updates(
    pool: SandboxPool,
) -> None:
    """What an event of another region makes may come before what an earlier update makes."""
    nodes = (
        Node((Wake(4, 1, 0),)),
        Node((Wake(0, 3, 0),), ONE, ((0,),)),
        Node((Wake(0, 3, 1),)),
        Node((), TWO, ((1,), (2,))),
    )
    events = [placed(0, "x", ()), placed(2, "other", (2,))]

    found = grown(pool, a_call_of(Wiring("order", nodes), events))

    assert values(found) == [["x", "x other"]]
    assert [(made.parent, made.wake) for made in found.made[0]] == [(0, 4), (1, 0)]


@pytest.mark.parametrize("hops", [1, 2, 3, 5])
def test_a_circle_goes_round_until_it_is_stale_or_too_far(pool: SandboxPool, hops: int) -> None:
    """By outputs, once; by inputs for ever, so that hops have to end it."""
    for by_input in (False, True):
        nodes = (
            Node((Wake(0, 1, 0),), name="source"),
            Node((Wake(0, 2, 0),), TWO, ((0,), (2,)), by_input=by_input, name="one"),
            Node((Wake(0, 1, 1),), ONE, ((1,),), by_input=by_input, name="two"),
        )
        call = a_call_of(
            Wiring(f"circle {by_input}", nodes), an_event("x", 5), bounds=Bounds(hops, 99)
        )
        found = grown(pool, call)

        assert len(found.made[0]) == (hops if by_input else min(hops, 2))
        last = {"hop-limit": 1} if by_input or hops < 3 else {"stale": 1}
        assert kinds(found) == {"emitted": len(found.made[0]), **last}
