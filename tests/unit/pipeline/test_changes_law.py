"""What follows from the log equals a plain serial interpretation of it, whatever the batches, the
crashes and the borders between tenants."""

from __future__ import annotations

from typing import Any

import pytest
from changing_law import assert_lawful
from changing_oracle import EXTRA, Given, Shown
from changing_world import STREAMS, World, an_object
from hypothesis import event, given, settings
from hypothesis import strategies as st
from oracle import Composite
from serial_order import SIMPLE, javascript, python

from pipeline.limits import Limits

LIMITS = Limits(30, 60)
"""Loops with staleness by input end by them alone."""

MAX_OF_GRANTS = max(1, settings.get_profile("changes").max_examples // 2)

DEATHS = ("before", "after")
STORING = (*DEATHS, "forget1", "forget2", "forget3")
SENDING = (*DEATHS, "silent")


@st.composite
def faults(draw: st.DrawFn) -> dict[tuple[str, int], str]:
    """What goes wrong: a crash at some transactions and some messages, or a silent broker."""
    storing = st.dictionaries(st.integers(1, 60), st.sampled_from(STORING), max_size=3)
    found = {("store", number): kind for number, kind in draw(storing).items()}
    for call in ("emit", "poll", "send_to_log", "flush"):
        sending = st.dictionaries(st.integers(1, 60), st.sampled_from(SENDING), max_size=1)
        found |= {(call, number): kind for number, kind in draw(sending).items()}
    return found


def play(draw: Any, world: World, tenants: int, cycles: bool) -> None:
    """Some objects, then anything in any order, the pipeline at any distance behind."""
    ids = [f"so{n}" for n in range(draw(st.integers(1, 4)))]
    whose = {each: draw(st.integers(0, tenants - 1)) for each in ids}
    gone: set[str] = set()

    def drawn(id_: str) -> Any:
        others = [ref for ref in world.readable(whose[id_], id_) if cycles or ref[0] < id_]
        return an_object(draw, id_, whose[id_], others, draw(st.booleans()), cycles)

    for id_ in ids:
        world.create(*drawn(id_))
    steps = ["put"] * 10 + ["work"] * 3 + ["replace"] * 2 + ["activate", "erase", "crash"]
    steps += ["grant", "revoke", "repeat", "delete", "move", "move"]
    for _ in range(draw(st.integers(1, 30))):
        step = draw(st.sampled_from(steps))
        alive = [each for each in ids if each in world.versions and each not in gone]
        id_ = draw(st.sampled_from(alive or ids))
        if step == "put" and world.versions:
            target = draw(st.sampled_from(sorted(world.versions)))
            name = draw(st.sampled_from([*SIMPLE, *SIMPLE, "c0", EXTRA]))
            world.put((target, name), draw(st.integers(0, 25)), draw(st.integers(0, 99)))
        elif step == "replace" and alive:
            world.replace(*drawn(id_))
        elif step == "activate" and alive:
            world.activate(id_, draw(st.integers(1, len(world.versions[id_]))))
        elif step == "move" and alive:
            world.move(id_, draw(st.integers(0, world.partitions - 1)))
        elif step == "erase" and alive:
            world.erase((id_, draw(st.sampled_from(STREAMS))))
        elif step == "grant" and alive:
            give(draw, world, id_)
        elif step == "revoke":
            take_back(draw, world)
        elif step == "delete" and alive and draw(st.booleans()):
            world.delete(id_)
            gone.add(id_)
        elif step == "repeat":
            world.repeat(draw(st.integers(0, 99)))
        elif step == "crash":
            world.crash()
        elif step == "work":
            world.run([draw(st.integers(0, length)) for length in world.lengths()])
        if step not in ("put", "work"):
            event(step)
    world.finish()


def give(draw: Any, world: World, id_: str) -> None:
    """A grant of the object, or of one of its streams, to somebody or everybody."""
    stream = draw(st.sampled_from([None, *STREAMS]))
    tenant = draw(st.sampled_from([None, 0, 1, 2]))
    number = len(world.given) + 1
    world.grant(Given(f"g{number}", id_, stream, tenant), draw(st.booleans()))


def take_back(draw: Any, world: World) -> None:
    if world.in_force:
        world.revoke(draw(st.sampled_from(sorted(world.in_force))))


def play_grants(draw: Any, world: World) -> None:
    """One tenant's streams, read by another, whose composites are read by a third object."""
    tenants = {"so0": 0, "so1": 1, "so2": draw(st.integers(0, 2))}
    public = dict.fromkeys(tenants, True)

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
    steps = ["put"] * 5 + ["grant", "revoke", "publish", "work"] * 2
    steps += ["delete", "crash", "repeat"]
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
                world.run([draw(st.integers(0, length)) for length in world.lengths()])
    world.finish()


@settings.get_profile("changes")
@given(data=st.data())
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("tenants", [1, 3])
@pytest.mark.parametrize("cycles", [False, True], ids=["trees", "cycles"])
def test_changes_equal_the_serial_order(data, partitions: int, tenants: int, cycles: bool) -> None:
    """Definitions, erasures and deletions switch at their place, for every later update."""
    world = World(partitions, None, data.draw(faults()), LIMITS)
    play(data.draw, world, tenants, cycles)
    assert_lawful(world)


@settings(settings.get_profile("changes"), max_examples=MAX_OF_GRANTS)
@given(data=st.data())
@pytest.mark.parametrize("partitions", [1, 2])
def test_grants_end_where_the_log_says_so(data, partitions: int, in_sandbox) -> None:
    """What reads by them is woken before, and not after; who loses an input is told once."""
    world = World(partitions, in_sandbox, data.draw(faults()), LIMITS)
    play_grants(data.draw, world)
    oracle = assert_lawful(world)
    if any(verdict == "revoked" for _, verdict in oracle.verdicts):
        event("somebody was told")
