"""When a composite of a tree computes: the options and last updates of trees, one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import plain_trees
import pytest
from listing_programs import ONE, TWO, grown, listing, placed
from random_trees import in_python
from sandbox_pools import a_pool
from sandbox_trees import (
    BOUNDS,
    a_call_of,
    a_function,
    an_event,
    an_update,
    kinds,
    told,
    value_of,
    values,
)

from sandbox import Program, SandboxPool
from sandbox.trees import Bounds, Event, Grown, Last, Node, Wake, Wiring


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    pool = a_pool(engine=request.param)
    yield pool
    pool.close()


def diamond(**options: bool) -> Wiring:
    """0 wakes 1 and 2, and both wake 3; a border of regions lies before 3 where that settles."""
    return Wiring(
        f"diamond {options}",
        (
            Node((Wake(0, 1, 0), Wake(1, 2, 0)), name="source"),
            Node((Wake(0, 3, 0),), ONE, ((0,),), name="left"),
            Node((Wake(0, 3, 1),), ONE, ((0,),), name="right"),
            Node((), TWO, ((1,), (2,)), **options),
        ),
    )


def ends(grown: Grown, node: int) -> dict[str, int]:
    return {each.kind: each.times for each in grown.ended if each.node == node}


def test_of_several_paths_the_first_computes(pool: SandboxPool) -> None:
    """The other is stale: equal timestamps mean that somebody got here first."""
    found = grown(pool, a_call_of(diamond(), an_event("x", 5)))

    assert values(found) == [["x", "x", "x x"]]
    assert ends(found, 3) == {"emitted": 1, "stale": 1}
    (stale,) = [each for each in found.ended if each.kind == "stale"]
    assert (stale.tree, stale.parent, stale.inputs) == (0, 2, None)
    assert stale.message == "trigger 5 is not newer than output 5"


LEFT, RIGHT = Wake(0, 1, 0), Wake(0, 1, 1)
JOIN = (Node((LEFT,), name="left"), Node((), TWO, ((0,), (2,)), settles=True), Node((RIGHT,)))


@pytest.mark.parametrize(
    ("events", "made", "superseded"),
    [
        ([placed(0, "l", ())], ["l -"], 0),
        ([placed(0, "l", (1,)), placed(2, "r", (2,))], ["l r"], 1),
        ([placed(2, "r", (1,)), placed(0, "l", (2,))], ["l r"], 1),
        ([placed(0, "l", (3,)), placed(2, "r", (0, 0))], ["l r"], 1),
        ([placed(0, "l", (1,)), placed(2, "r", (2,), at=4)], ["l r"], 1),
        ([placed(0, "l", (1, 1)), placed(0, "m", (1, 2)), placed(2, "r", (2, 0))], ["m r"], 2),
        # The last path is longer than trees may be: the one before it is the last that computes.
        ([placed(0, "l", (1,)), placed(2, "r", (1, 2, 3))], ["l -"], 0),
    ],
)
def test_what_settles_computes_for_the_last_path(
    pool: SandboxPool, events: Sequence[Event], made: list[str], superseded: int
) -> None:
    """When all that it reads of this tree has come."""
    found = grown(pool, a_call_of(Wiring("join", JOIN), events, bounds=Bounds(3, 100)))

    assert values(found) == [made]
    assert ends(found, 1).get("superseded", 0) == superseded
    assert ends(found, 1)["emitted"] == 1


def test_each_tree_settles_for_itself(pool: SandboxPool) -> None:
    trees = [[placed(0, n, (1,), at=n), placed(2, -n, (2,), at=n)] for n in range(1, 5)]

    found = grown(pool, a_call_of(Wiring("join", JOIN), *trees))

    assert values(found) == [[f"{n} -{n}"] for n in range(1, 5)]
    assert ends(found, 1) == {"superseded": 4, "emitted": 4}


BY_INPUT = Wiring(
    "by input",
    (
        Node((Wake(0, 1, 0),), name="ahead"),
        Node((), TWO, ((0,), (2,)), by_input=True),
        Node((Wake(0, 1, 1),), name="behind"),
    ),
)


def test_who_goes_by_its_inputs_is_not_silenced_by_one_that_runs_ahead(pool: SandboxPool) -> None:
    """Each has to be newer than what was last used of it; outputs advance by a tick then."""
    trees = [an_event("a", 100), an_event("b", 5, node=2), an_event("c", 5, node=2),
             an_event("d", 6, node=2), an_event("e", 100), an_event("f", 101)]  # fmt: skip

    found = grown(pool, a_call_of(BY_INPUT, *trees))

    assert values(found) == [["a -"], ["a b"], [], ["a d"], [], ["f d"]]
    assert [made.timestamp for tree in found.made for made in tree] == [100, 101, 102, 103]
    states = [json.loads(made.state or b"") for tree in found.made for made in tree]
    assert states[0] == {"ahead": 100}
    assert states[-1] == {"ahead": 101, "behind": 6}
    (stale,) = [each for each in found.ended if each.kind == "stale"]
    assert stale.message == "trigger 100 is not newer than 100, last used of this input"


def test_a_state_goes_with_the_last_output(pool: SandboxPool) -> None:
    """What was used of all inputs is known, whichever it was that woke."""
    lasts = [Last(0, 70, an_update("old", 70)), Last(1, 90, b"0", b'{"ahead":80,"behind":3}')]

    found = grown(pool, a_call_of(BY_INPUT, an_event("new", 4, node=2), lasts=lasts))

    assert values(found) == [["old new"]]
    assert found.made[0][0].timestamp == 91
    assert json.loads(found.made[0][0].state or b"") == {"ahead": 80, "behind": 4}


def test_who_skips_waits_for_all_its_inputs(pool: SandboxPool) -> None:
    """Not for its own last output, which has to come from somewhere."""
    nodes = (
        Node((Wake(0, 1, 0),)),
        Node((), listing(3), ((0,), (2, 3), (1,)), own=2, skips=True),
        Node((Wake(0, 1, 1),)),
        Node((Wake(0, 1, 1),)),
    )
    trees = [an_event("a", 1), an_event("b", 1, node=3), an_event("c", 2)]

    found = grown(pool, a_call_of(Wiring("skips", nodes), *trees))

    assert values(found) == [[], ["a b -"], ["c b a b -"]]
    (missing,) = [each for each in found.ended if each.kind == "missing"]
    assert (missing.times, missing.inputs) == (1, [1, None, None])


def test_who_skips_says_so_before_it_is_stale(pool: SandboxPool) -> None:
    """What is missing does not depend on what has been computed."""
    nodes = (Node((Wake(0, 1, 0),)), Node((), TWO, ((0,), (2,)), skips=True), Node())
    call = a_call_of(Wiring("both", nodes), an_event(at=5), lasts=[Last(1, 9, b"0")])

    assert kinds(grown(pool, call)) == {"missing": 1}


def test_a_group_is_its_newest_member_the_first_of_equals(pool: SandboxPool) -> None:
    nodes = (Node((Wake(0, 1, 0),)), Node((), TWO, ((0,), (2, 3, 4))), Node(), Node(), Node())
    wiring = Wiring("group", nodes)
    for times, newest in (((3, 3, 1), "2"), ((1, 3, 3), "3"), ((1, 2, 3), "4"), ((), "-")):
        lasts = [Last(n, at, an_update(str(n), at)) for n, at in enumerate(times, 2)]
        found = grown(pool, a_call_of(wiring, an_event("x", 2), lasts=lasts))
        assert values(found) == [[f"x {newest}"]]
        assert found.made[0][0].timestamp == max([2, *times])


def test_what_wakes_is_the_update_itself_however_old(pool: SandboxPool) -> None:
    """Even where its stream, or its group, has a newer one: that stays the last."""
    nodes = (
        Node((Wake(0, 1, 0), Wake(1, 2, 0))),
        Node((), ONE, ((0, 3),)),
        Node((), TWO, ((0,), (0, 3))),
        Node(),
    )
    lasts = [Last(0, 8, an_update("new", 8)), Last(3, 9, an_update("newest", 9))]

    found = grown(pool, a_call_of(Wiring("old", nodes), an_event("old", 4), lasts=lasts))

    assert values(found) == [["old", "old newest"]]
    assert [made.timestamp for made in found.made[0]] == [4, 9]


def test_an_update_that_is_put_in_is_the_last_output_from_then_on(pool: SandboxPool) -> None:
    """It wakes whoever reads the stream, and its own composite has it as its last output."""
    nodes = (
        Node((Wake(0, 1, 0),)),
        Node((Wake(0, 2, 0),), TWO, ((0,), (1,)), own=1),
        Node((), ONE, ((1,),)),
    )
    trees = [an_event("a", 1), an_event("put", 5, node=1), an_event("b", 4), an_event("c", 6)]

    found = grown(pool, a_call_of(Wiring("put", nodes), *trees))

    assert values(found) == [["a -", "a -"], ["put"], [], ["c put", "c put"]]
    assert ends(found, 1) == {"emitted": 2, "stale": 1}


@pytest.mark.parametrize("nodes", [5000, 5001, 10_001])
def test_a_wiring_of_any_size_comes_in_portions(pool: SandboxPool, nodes: int) -> None:
    """The last stream of it computes like the first one."""
    read = Node((Wake(0, 1, 0), Wake(1, nodes - 1, 0)))
    composite = Node((), ONE, ((0,),))
    wiring = Wiring(f"large {nodes}", (read, composite, *[Node()] * (nodes - 3), composite))

    found = grown(pool, a_call_of(wiring, an_event("x")))

    assert values(found) == [["x", "x"]]
    assert [made.node for made in found.made[0]] == [1, nodes - 1]


def test_however_much_there_is_to_tell_it_fits_into_a_frame(pool: SandboxPool) -> None:
    """Thousands of long errors cost their messages, and no process."""
    count = 3000
    program = a_function(r"throw new Error('\u0001'.repeat(300))")
    nodes = [Node(tuple(Wake(n, n + 1, 0) for n in range(count)))]
    nodes += [Node(code=program, inputs=((0,),))] * count
    call = a_call_of(Wiring("thousands", tuple(nodes)), an_event())

    (grown,) = pool.grow("tenant", [call])

    assert kinds(grown) == {"script-error": count}
    explained = [each for each in grown.ended if each.message]
    assert 0 < len(explained) < count
    assert {tuple(each.inputs or ()) for each in explained} == {(2,)}
    assert not pool.kills


def test_what_is_nobody_s_to_read_needs_no_document(pool: SandboxPool) -> None:
    """Only the time of a composite's last output matters where no code reads it."""
    for at, kind in ((4, "emitted"), (5, "stale")):
        call = a_call_of(diamond(), an_event("x", 5), lasts=[Last(3, at, None)])
        assert ends(grown(pool, call), 3).keys() == {kind, "stale"}


def test_no_trees_and_trees_of_nothing_make_nothing(pool: SandboxPool) -> None:
    assert told(grown(pool, a_call_of(diamond()))) == ([], [], False)
    assert told(grown(pool, a_call_of(diamond(), []))) == ([[]], [], False)
    assert told(grown(pool, a_call_of(diamond(), an_event(node=3)))) == ([[]], [], False)


def test_the_plain_evaluator_is_asked_as_a_pool_is() -> None:
    """It stands for another evaluator, whose codes are functions of Python."""
    nodes = (Node((Wake(0, 1, 0),)), Node((), Program("adds 1", "function", ("a",), ()), ((0,),)))
    call = in_python(a_call_of(Wiring("plain", nodes), an_event(4), bounds=BOUNDS))

    (found,) = plain_trees.PlainTrees().grow("tenant", [call])

    assert [value_of(each) for each in found.made[0]] == [4 + 2 * 4]


def test_a_region_that_is_too_large_for_a_worker_goes_step_by_step(
    pool: SandboxPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever else is in its frame is grown all the same, and no process ends."""
    monkeypatch.setattr("sandbox.host.knowledge.MAX_WIRING_BYTES", 1000)
    large = Wiring("large", diamond().nodes)
    small = Wiring("small", (Node((Wake(0, 1, 0),)), Node((), ONE, ((0,),))))
    kills = pool.kills
    calls = [a_call_of(each, an_event("x", 5)) for each in (large, small)]

    refused, grown = pool.grow("tenant", calls)

    assert (list(refused.made), refused.failed) == ([], True)
    assert values(grown) == [["x"]]
    assert pool.kills == kills
