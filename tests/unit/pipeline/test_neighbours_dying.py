"""Workers die while tenants begin to read each other, end it and move: nothing comes of that."""

from __future__ import annotations

from typing import Any

import pytest
from neighbours import Neighbours


def granting(world: Neighbours) -> None:
    """What is private is granted, updated, erased, revoked and deleted."""
    world.define("p", "x", "s", public=False, d=("s",))
    world.put("x/s", 1)
    world.grant("g", "x", "q")
    world.put("x/s", 2)
    world.erase("x", "s")
    world.put("x/s", 3)
    world.put("r/own", 1)
    world.run()
    world.put("r/own", 2)
    world.revoke("g")
    world.put("x/s", 4)
    world.delete("x")


def reading(world: Neighbours) -> None:
    """The reader names another stream, and is joined by one of its own tenant, and goes."""
    world.put("x/s", 1)
    world.define("q", "r", "own", c=("x/d",), k=("own", "x/d"))
    world.put("x/s", 2)
    world.run()
    world.define("q", "also", "own", c=("r/c", "x/s"))
    world.put("x/s", 3)
    world.run()
    world.delete("also")
    world.put("x/s", 4)
    world.run()
    world.put("r/own", 5)


def moving(world: Neighbours) -> None:
    """The reader moves while updates come; and its provider does."""
    world.put("x/s", 1)
    world.define("q", "bigger", "own", c=("big/own", "r/own"))
    world.put("x/s", 2)
    world.run()
    world.put("x/s", 3)
    world.define("p", "heavier", "own", c=("heavy/own", "x/d"))
    world.put("x/s", 4)
    world.run()
    world.put("x/s", 5)


def a_world() -> Neighbours:
    found = Neighbours(most=2)
    found.define("p", "x", "s", d=("s",))
    found.define("q", "r", "own", c=("x/s",), k=("own", "x/s"))
    found.define("z", "t", "own", c=("x/d",))
    for tenant, big, bigger in (("q", "big", "bigger"), ("p", "heavy", "heavier")):
        found.define(tenant, big, "own")
        found.define(tenant, bigger, "own", c=(f"{big}/own",))
    found.run()
    return found


def outcome(world: Neighbours) -> dict[str, Any]:
    """All that tenants can see, and what is known of who reads whom."""
    state = world.state
    assert not state.dead_letters
    assert not state.put_off.keys() - state.taken_up
    there = ["/".join(ref) for ref in state.readable().values()]  # the rest may not be purged yet
    return {
        "stored": {ref: world.stored(ref) for ref in there},
        "got": {(e.service_object, e.stream, e.timestamp) for e in state.emitted},
        "verdicts": {ref: world.verdicts(ref) for ref in there},
        "inputs": {
            key: (row.is_open, row.fed_in, row.left_in, row.awaits is None, row.last)
            for key, row in state.inputs_from_outside.items()
        },
        "readers": {
            key: (each.partition, each.is_open) for key, each in state.outside_readers.items()
        },
    }


UNDISTURBED: dict[Any, tuple[dict[str, Any], int]] = {}


def undisturbed(scene: Any) -> tuple[dict[str, Any], int]:
    """What comes of it if nobody dies, and in how many transactions."""
    if scene not in UNDISTURBED:
        world = a_world()
        before = len(world.batches)
        scene(world)
        world.run()
        UNDISTURBED[scene] = outcome(world), len(world.batches) - before
    return UNDISTURBED[scene]


@pytest.mark.parametrize("death", ["before", "after"])
@pytest.mark.parametrize("scene", [granting, reading, moving])
def test_whichever_transaction_a_worker_dies_in_nothing_comes_of_it(
    scene: Any, death: str
) -> None:
    expected, transactions = undisturbed(scene)
    assert transactions > 15
    for number in range(1, transactions + 1):
        world = a_world()
        with world.dying(number, death):
            scene(world)
            world.run()
        assert outcome(world) == expected, number
