"""Changes in the log equal a plain serial interpretation, whatever the batches and crashes."""

from __future__ import annotations

from typing import Any

import pytest
from changing_oracle import EXTRA, Given, Shown
from changing_world import (
    STREAMS,
    World,
    an_object,
    assert_equal_for_readers,
    assert_equal_to_oracle,
    purge,
)
from hypothesis import event, given, settings
from hypothesis import strategies as st
from oracle import Composite, Ref
from serial_order import SIMPLE, javascript, python

MAX_OF_GRANTS = max(1, settings.get_profile("changes").max_examples // 2)


def play(draw: Any, world: World, cycles: bool) -> None:
    """Some objects, then anything in any order, the pipeline at any distance behind."""
    ids = [f"so{n}" for n in range(draw(st.integers(1, 3)))]
    tenants = {each: draw(st.integers(0, 1)) for each in ids}
    alive: list[str] = []

    def drawn(id_: str) -> Any:
        others = others_of(id_)
        return an_object(draw, id_, tenants[id_], others, draw(st.booleans()), cycles)

    def others_of(id_: str) -> list[Ref]:
        known = [each for each in alive if cycles or each < id_]
        return [(each, name) for each in known if each != id_ for name in STREAMS]

    for id_ in ids:
        world.create(*drawn(id_))
        alive.append(id_)
    for _ in range(draw(st.integers(1, 30))):
        step = draw(
            st.sampled_from(
                ["put"] * 8
                + ["replace", "activate", "erase", "work", "crash"]
                + ["grant"] * 2
                + ["revoke"] * 2
                + ["delete", "repeat"]
            )
        )
        id_ = draw(st.sampled_from(alive or ids))
        if step == "put":
            target = draw(st.sampled_from(ids))
            name = draw(st.sampled_from([*SIMPLE, *SIMPLE, "c0", EXTRA]))
            world.put((target, name), draw(st.integers(0, 25)), draw(st.integers(0, 99)))
        elif step == "replace" and alive:
            world.replace(*drawn(id_))
        elif step == "activate" and alive:
            version = draw(st.integers(1, len(world.versions[id_])))
            world.activate(id_, version)
        elif step == "erase" and alive:
            world.erase((id_, draw(st.sampled_from(STREAMS))))
        elif step == "grant" and alive:
            give(draw, world, id_)
        elif step == "revoke":
            take_back(draw, world)
        elif step == "delete" and alive and draw(st.booleans()):
            world.delete(id_)
            alive.remove(id_)
        elif step == "repeat":
            world.repeat(draw(st.integers(0, 99)))
        elif step == "crash":
            world.crash()
        elif step == "work":
            lengths = [len(each) for each in world.platform.state.log]
            world.run([draw(st.integers(0, length)) for length in lengths])
        if step not in ("put", "work"):
            event(step)
    run_all(draw, world)


def run_all(draw: Any, world: World) -> None:
    lengths = [len(each) for each in world.platform.state.log]
    for _ in range(draw(st.integers(0, 2))):
        world.run([draw(st.integers(0, length)) for length in lengths])
    world.run([None] * world.partitions)
    world.run([None] * world.partitions)


def give(draw: Any, world: World, id_: str) -> None:
    """A grant of the object, or of one of its streams, to somebody or everybody."""
    stream = draw(st.sampled_from([None, *STREAMS]))
    tenant = draw(st.sampled_from([None, 0, 1]))
    world.given += 1
    world.grant(Given(f"g{world.given}", id_, stream, tenant), draw(st.booleans()))


def take_back(draw: Any, world: World) -> None:
    if world.oracle.given:
        world.revoke(draw(st.sampled_from(sorted(world.oracle.given))))


def play_grants(draw: Any, world: World) -> None:
    """One tenant's streams, read by another, whose composites are read by a third object."""
    tenants = {"so0": 0, "so1": 1, "so2": draw(st.integers(0, 1))}
    public = dict.fromkeys(tenants, False)

    def drawn(id_: str) -> Any:
        reads = {"so0": ("so0", SIMPLE[0]), "so1": ("so0", "c0"), "so2": ("so1", "c0")}[id_]
        groups = {} if reads[0] == id_ else {"g0": (reads,), "g1": (("so0", SIMPLE[0]),)}
        inputs = {"c0": tuple(groups) or SIMPLE[:1], "c1": ("c0", *list(groups)[:1])}
        numbers = (draw(st.integers(0, 9)), draw(st.integers(3, 9)), draw(st.integers(5, 20)))
        composites = [Composite(name, each, python(*numbers)) for name, each in inputs.items()]
        codes = {(id_, name): javascript(each, *numbers) for name, each in inputs.items()}
        thing = Shown(id_, tuple(SIMPLE), tuple(composites), groups, tenants[id_], public[id_])
        return thing, codes

    for id_ in tenants:
        world.create(*drawn(id_))
    steps = ["put"] * 4 + ["grant", "revoke", "publish"] * 2
    steps += ["delete", "work", "crash", "repeat"]
    gone: set[str] = set()
    for step in draw(st.lists(st.sampled_from(steps), min_size=5, max_size=25)):
        id_ = draw(st.sampled_from(["so0", "so0", "so1"]))
        match step:
            case "put":
                name = draw(st.sampled_from([*SIMPLE, "c0"]))
                world.put((id_, name), draw(st.integers(0, 25)), draw(st.integers(0, 99)))
            case "delete" if id_ not in gone:
                world.delete(id_)
                gone.add(id_)
            case "grant" if id_ not in gone:
                give(draw, world, id_)
            case "revoke":
                take_back(draw, world)
            case "publish" if id_ not in gone:
                public[id_] = not public[id_]
                world.replace(*drawn(id_))
            case "repeat":
                world.repeat(draw(st.integers(0, 99)))
            case "crash":
                world.crash()
            case "work":
                lengths = [len(each) for each in world.platform.state.log]
                world.run([draw(st.integers(0, length)) for length in lengths])
    if any(verdict == "revoked" for _, verdict in world.oracle.verdicts):
        event("somebody was told")
    run_all(draw, world)


@settings.get_profile("changes")
@given(data=st.data())
@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("cycles", [False, True], ids=["trees", "cycles"])
def test_changes_equal_the_serial_order(data, partitions: int, cycles: bool, in_sandbox) -> None:
    """Definitions, erasures and deletions switch at their place, for every later update."""
    faults = data.draw(
        st.dictionaries(st.integers(1, 40), st.sampled_from(["before", "after"]), max_size=3)
    )
    world = World(partitions, in_sandbox, faults)
    play(data.draw, world, cycles)

    assert_equal_for_readers(world)
    purge(world)
    assert_equal_to_oracle(world)


@settings(settings.get_profile("changes"), max_examples=MAX_OF_GRANTS)
@given(data=st.data())
@pytest.mark.parametrize("partitions", [1, 2])
def test_grants_end_where_the_log_says_so(data, partitions: int, in_sandbox) -> None:
    """What reads by them is woken before, and not after; who loses an input is told once."""
    faults = data.draw(
        st.dictionaries(st.integers(1, 40), st.sampled_from(["before", "after"]), max_size=3)
    )
    world = World(partitions, in_sandbox, faults)
    play_grants(data.draw, world)

    assert_equal_for_readers(world)
    purge(world)
    assert_equal_to_oracle(world)
