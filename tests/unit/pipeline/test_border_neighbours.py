"""Tenants that read each other: from which place on, what they know, and what ends it."""

from __future__ import annotations

import pytest
from neighbours import Neighbours

from pipeline.limits import NO_LIMITS
from servioticy.domain.borders import MAX_BORDERS


@pytest.fixture
def world() -> Neighbours:
    """`x` of a provider is in partition 0, and `r` of another tenant, which reads it, in 1.

    `c` computes over `x/s` alone; `k` is woken by what `r` gets itself, and keeps `x/s`.
    """
    found = Neighbours()
    found.define("p", "x", "s", "other", d=("s",))
    found.define("q", "r", "own", c=("x/s",), k=("own", "x/s"))
    found.run()
    assert [found.partition_of(each) for each in "xr"] == [0, 1]
    return found


def send(world: Neighbours, *puts: tuple[str, int]) -> None:
    for ref, at in puts:
        world.put(ref, at)
    world.run()


def test_who_reads_is_woken_in_a_tree_of_its_own(world: Neighbours) -> None:
    send(world, ("x/s", 1), ("x/s", 3), ("x/s", 2))

    assert world.got("r/c") == [1, 3]
    assert world.verdicts("r/c") == {"emitted": 2, "stale": 1}
    assert world.got("x/d") == [1, 3]
    assert world.known("r", "x/s") == 3
    told = world.told("r/c", "stale")
    assert (told["trigger"], told["timestamp"]) == ("x/s", 2)


def test_what_is_not_newer_is_not_what_is_known(world: Neighbours) -> None:
    send(world, ("x/s", 5), ("x/s", 4))

    assert world.known("r", "x/s") == 5


def test_what_composites_make_crosses_and_hops_are_counted_on(world: Neighbours) -> None:
    world.define("z", "far", "own", c=("x/d",), e=("c",))
    world.run()
    send(world, ("x/s", 1))
    assert world.got("far/e") == [1]

    deep = Neighbours(limits=NO_LIMITS._replace(hops=3))
    deep.define("p", "x", "s", d=("s",))
    deep.define("z", "far", "own", c=("x/d",), e=("c",))
    deep.run()
    send(deep, ("x/s", 1))
    assert deep.got("far/c") == [1], "a composite, a border and a composite"
    assert deep.verdicts("far/e") == {"hop-limit": 1}


def test_two_tenants_that_wake_each_other_end() -> None:
    """With `staleness: "output"` at once; whatever they do after so many borders."""
    world = Neighbours()
    world.define("p", "a", "s", "start")
    world.define("q", "b", "own", c=("a/s",))
    world.define("p", "a", "start", s=("start", "b/c"))
    world.run()
    send(world, ("a/start", 1))

    assert world.got("a/s") == [1]
    assert world.got("b/c") == [1]
    assert world.verdicts("a/s") == {"emitted": 1, "stale": 1}


def test_beyond_so_many_borders_nobody_is_woken() -> None:
    world = Neighbours(1)
    world.define("t0", "so0", "s")
    world.define("t0", "so0", "s", c=("s",))
    count = MAX_BORDERS + 2
    for number in range(1, count + 1):
        world.define(f"t{number % 2}", f"so{number}", "own", c=(f"so{number - 1}/c",))
    world.run()
    send(world, ("so0/s", 1))

    assert [world.got(f"so{n}/c") for n in range(count + 1)] == [[1]] * (MAX_BORDERS + 1) + [
        []
    ] * 2
    assert world.verdicts(f"so{MAX_BORDERS + 1}/c") == {"hop-limit": 1}
    assert "8 borders" in world.told(f"so{MAX_BORDERS + 1}/c", "hop-limit")["message"]


def test_a_reader_begins_with_the_last_update_and_is_not_woken_by_it(world: Neighbours) -> None:
    send(world, ("x/s", 7))
    world.define("q", "late", "own", c=("x/s",), k=("own", "x/s"))
    world.run()
    assert world.got("late/c") == []
    assert world.known("late", "x/s") == 7

    send(world, ("late/own", 8), ("x/s", 9))
    assert world.got("late/c") == [9]
    assert world.verdicts("late/k")["emitted"] >= 1


def test_only_what_is_read_beside_another_trigger_is_known(world: Neighbours) -> None:
    world.define("q", "light", "own", c=("x/s",))
    world.run()
    send(world, ("x/s", 7))

    assert world.got("light/c") == [7]
    assert world.known("light", "x/s") is None


def test_what_is_not_public_is_read_by_a_grant_while_it_lasts(world: Neighbours) -> None:
    world.define("p", "x", "s", "other", public=False, d=("s",))
    world.run()
    assert world.verdicts("r/c") == world.verdicts("r/k") == {"revoked": 1}
    assert world.known("r", "x/s") is None
    assert world.told("r/c", "revoked")["trigger"] == "x"
    send(world, ("x/s", 1))
    assert world.got("r/c") == []

    world.grant("g", "x", "q", "s")
    world.run()
    assert world.known("r", "x/s") == 1, "as it stood when it was granted"
    send(world, ("x/s", 2))
    assert world.got("r/c") == [2]

    world.revoke("g")
    world.run()
    assert world.verdicts("r/c") == {"revoked": 2, "emitted": 1}
    send(world, ("x/s", 3))
    assert world.got("r/c") == [2]
    assert world.known("r", "x/s") is None


@pytest.mark.parametrize(("stream", "grantee"), [("other", "q"), ("s", "z")])
def test_what_is_granted_otherwise_opens_nothing(
    world: Neighbours, stream: str, grantee: str
) -> None:
    world.define("p", "x", "s", "other", public=False, d=("s",))
    world.grant("g", "x", grantee, stream)
    world.run()
    send(world, ("x/s", 1))

    assert world.got("r/c") == []


def test_a_grant_beside_another_one_ends_nothing(world: Neighbours) -> None:
    world.define("p", "x", "s", "other", public=False, d=("s",))
    for each in ("g", "h"):
        world.grant(each, "x", "q", "s")
    world.run()
    world.revoke("g")
    world.run()
    send(world, ("x/s", 1))

    assert world.got("r/c") == [1]
    assert world.verdicts("r/c") == {"revoked": 1, "emitted": 1}


def test_a_deletion_ends_what_was_read_and_says_so_once(world: Neighbours) -> None:
    send(world, ("x/s", 1))
    world.delete("x")
    world.run()

    assert world.verdicts("r/c") == {"emitted": 1, "revoked": 1}
    assert not world.state.outside_readers
    assert world.known("r", "x/s") is None
    send(world, ("r/own", 3))
    assert world.verdicts("r/k")["emitted"] == 2, "by what is its own it computes on"


def test_who_is_deleted_is_fed_no_more(world: Neighbours) -> None:
    world.delete("r")
    world.run()

    assert not world.state.outside_readers
    assert not world.state.inputs_from_outside
    before = len(world.state.log[1])
    send(world, ("x/s", 1))
    assert len(world.state.log[1]) == before, "nothing goes where nobody reads it"


def test_what_a_new_document_does_not_name_is_not_read(world: Neighbours) -> None:
    world.define("q", "r", "own", c=("x/other",), k=("own",))
    world.run()
    send(world, ("x/s", 1), ("x/other", 2))

    assert world.got("r/c") == [2]
    assert [ref.stream for _reader, ref in world.state.inputs_from_outside] == ["other"]
    assert [ref.stream for _reader, ref in world.state.outside_readers] == ["other"]


def test_an_erasure_is_one_for_the_readers_too(world: Neighbours) -> None:
    send(world, ("x/s", 1))
    world.erase("x", "s")
    world.run()
    assert world.known("r", "x/s") is None
    assert world.verdicts("r/c") == {"emitted": 1}, "nothing has ended"

    send(world, ("x/s", 2))
    assert world.known("r", "x/s") == 2
    assert world.got("r/c") == [1, 2]


def test_a_reader_that_moves_gets_each_update_once_and_in_order() -> None:
    """The provider knows of the move later than the reader: what comes meanwhile is sent on."""
    world = Neighbours()
    world.define("p", "x", "s")
    world.define("q", "r", "own", c=("x/s",), k=("own", "x/s"))
    world.define("q", "big", "own")
    world.define("q", "bigger", "own", c=("big/own",))
    world.run()
    places = {each: world.partition_of(each) for each in ("x", "r", "big")}
    assert places["r"] != places["big"]

    for at in range(1, 4):
        world.put("x/s", at)
    world.define("q", "bigger", "own", c=("big/own", "r/own"))
    assert world.partition_of("r") == places["big"], "it has joined the larger component"
    for at in range(4, 7):
        world.put("x/s", at)
    world.run()
    send(world, ("x/s", 7))

    assert world.got("r/c") == [1, 2, 3, 4, 5, 6, 7]
    assert world.verdicts("r/c") == {"emitted": 7}
    assert world.known("r", "x/s") == 7
    assert not world.state.put_off
    (row,) = world.state.inputs_from_outside.values()
    assert (row.fed_in, row.left_in, row.awaits) == (places["big"], None, None)
    (reader,) = world.state.outside_readers.values()
    assert reader.partition == places["big"]


def test_where_nobody_reads_any_more_after_a_move_nothing_is_sent() -> None:
    world = Neighbours()
    world.define("p", "x", "s")
    world.define("q", "r", "own", c=("x/s",))
    world.define("q", "big", "own")
    world.define("q", "bigger", "own", c=("big/own",))
    world.run()
    old = world.partition_of("r")
    world.define("q", "bigger", "own", c=("big/own", "r/own"))
    world.run()
    send(world, ("x/s", 1))

    crossed = [
        partition
        for batch in world.batches
        for each in batch.crossings
        for partition in each.partitions
        if b'"kind":"border"' in each.record
    ]
    assert old not in crossed
    assert crossed


def test_a_provider_may_move_too() -> None:
    """Marks are of streams and partitions: what comes from another one has an order of its own."""
    world = Neighbours()
    world.define("p", "x", "s", d=("s",))
    world.define("p", "big", "own")
    world.define("p", "bigger", "own", c=("big/own",))
    world.define("q", "r", "own", c=("x/s",), k=("own", "x/s"))
    world.run()
    before = world.partition_of("x")
    assert before != world.partition_of("big")
    send(world, ("x/s", 1), ("x/s", 2))
    world.define("p", "bigger", "own", c=("big/own", "x/s"))
    world.run()
    assert world.partition_of("x") != before
    send(world, ("x/s", 3), ("x/s", 4))

    assert world.got("r/c") == [1, 2, 3, 4]
    assert world.got("bigger/c") == [3, 4]
    world.define("q", "more", "own", c=("x/s",))
    world.define("p", "x", "s", public=False, d=("s",))
    world.run()
    send(world, ("x/s", 5))
    assert world.got("more/c") == []
    assert world.verdicts("more/c") == {"revoked": 1}
