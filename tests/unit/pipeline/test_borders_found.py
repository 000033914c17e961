"""What random worlds have found, as small as it gets."""

from __future__ import annotations

from changing_law import assert_lawful
from changing_oracle import Shown
from changing_world import World
from oracle import Composite, Ref
from put_off_runs import Whims
from serial_order import javascript

from pipeline.sharing.fairness import Fairness


def thing(
    id_: str, tenant: int, composites: dict[str, tuple[str, ...]], **groups: tuple[Ref, ...]
) -> tuple[Shown, dict[Ref, str]]:
    """A public object with stream d0, whose composites add up what they read."""
    made = [
        Composite(name, reads, lambda values: sum(1 if v is None else v for v in values))
        for name, reads in composites.items()
    ]
    codes = {(id_, name): javascript(reads, 0, 1000, 1001) for name, reads in composites.items()}
    return Shown(id_, ("d0",), tuple(made), groups, tenant, True), codes


def test_what_was_held_crosses_in_order() -> None:
    """`r` moves from partition 1 to 2 and has something held there; what it makes of that later
    stands in its log before what it has made meanwhile, and its reader `c` takes both."""
    world = World(3)
    world.create(*thing("a", 0, {}))
    world.create(*thing("r", 1, {"c0": ("d0", "g")}, g=(("a", "d0"),)))
    world.create(*thing("x", 1, {}))
    world.create(*thing("y", 1, {}, g=(("x", "d0"),)))
    world.create(*thing("c", 2, {"c0": ("g",)}, g=(("r", "c0"),)))
    world.finish()
    world.replace(*thing("r", 1, {"c0": ("d0", "g")}, g=(("a", "d0"),), h=(("x", "d0"),)))
    world.run([None, 4, None])  # partition 1 has released r, and does not go on
    world.put(("a", "d0"), 5, 1)
    world.run([None, 4, None])
    world.run([None, 4, None])
    world.put(("r", "d0"), 2, 2)
    world.run([None, 4, None])
    world.finish()
    oracle = assert_lawful(world)
    assert oracle.was_held
    assert [at for ref, at, _ in oracle.order if ref == ("c", "c0")] == [2, 5]


def putting_off(partitions: int = 1) -> tuple[World, Whims]:
    """A world in which tenants are over their share where the whims say so."""
    whims = Whims([])
    return World(partitions, fairness=Fairness(whims), puts_off=True), whims


def test_what_comes_behind_a_begin_that_is_put_off_is_not_lost() -> None:
    """Whom a record feeds is known where it is computed: the tenant's begin comes before."""
    world, whims = putting_off()
    world.create(*thing("a", 0, {}))
    world.create(*thing("r", 1, {"c0": ("g",)}, g=(("a", "d0"),)))
    world.run([None])
    whims.always = {world.tenants[1]}
    for at in range(3):
        world.put(("a", "d0"), at, at)
        world.run([None])
    whims.always = set()
    world.finish()
    oracle = assert_lawful(world)
    assert [at for ref, at, _ in oracle.order if ref == ("r", "c0")] == [0, 1, 2]


def test_what_comes_behind_a_definition_that_is_put_off_is_not_lost() -> None:
    """A stream that only the new version reads."""
    world, whims = putting_off()
    world.create(*thing("a", 0, {}))
    world.create(*thing("r", 1, {}, g=(("a", "d0"),)))
    world.finish()
    whims.always = {world.tenants[1]}
    world.replace(*thing("r", 1, {"c0": ("g",)}, g=(("a", "d0"),)))
    world.put(("a", "d0"), 1, 1)
    world.run([None])
    world.run([None])
    whims.always = set()
    world.finish()
    oracle = assert_lawful(world)
    assert [at for ref, at, _ in oracle.order if ref == ("r", "c0")] == [1]


def test_what_comes_again_behind_a_begin_that_is_put_off_is_taken_once() -> None:
    """It has been taken in though nobody was fed yet."""
    world, whims = putting_off()
    world.create(*thing("a", 0, {}))
    world.create(*thing("r", 1, {"c0": ("g",)}, g=(("a", "d0"),)))
    world.run([None])
    whims.always = {world.tenants[1]}
    world.put(("a", "d0"), 1, 1)
    world.run([None])
    world.crash()  # what has crossed may not have, so it is sent again
    world.run([None])
    world.crash()
    world.run([None])
    whims.always = set()
    world.finish()
    assert_lawful(world)


def test_what_comes_behind_a_version_that_begins_anew_is_not_taken_before_its_begin() -> None:
    """The record is for the version before; the begin of the new one has it already."""
    world, whims = putting_off()
    world.create(*thing("a", 0, {}))
    world.create(*thing("r", 1, {"c0": ("g",)}, g=(("a", "d0"),)))
    world.finish()
    whims.always = {world.tenants[1]}
    world.put(("a", "d0"), 1, 1)
    world.replace(*thing("r", 1, {}))
    world.replace(*thing("r", 1, {"c0": ("g",)}, g=(("a", "d0"),)))
    world.run([None])
    world.run([None])
    whims.always = set()
    world.finish()
    assert_lawful(world)


def test_what_comes_behind_a_begin_of_a_move_that_is_put_off_is_held() -> None:
    """It waits for what is sent on, not only for its turn."""
    world, whims = putting_off(3)
    world.create(*thing("a", 0, {}))
    world.create(*thing("r", 1, {"c0": ("g",)}, g=(("a", "d0"),)))
    world.create(*thing("x", 1, {}))
    world.create(*thing("y", 1, {}, g=(("x", "d0"),)))
    world.finish()
    world.put(("a", "d0"), 1, 1)  # comes to partition 1
    world.replace(*thing("r", 1, {"c0": ("g",)}, g=(("a", "d0"),), h=(("x", "d0"),)))
    world.run([None, 3, 0])  # partition 1 has released r, and does not go on
    world.put(("a", "d0"), 2, 2)  # comes to partition 2
    world.run([None, 3, 0])
    whims.always = {world.tenants[1]}
    world.run([0, 0, None])
    world.run([0, None, None])
    whims.always = set()
    world.finish()
    oracle = assert_lawful(world)
    assert [at for ref, at, _ in oracle.order if ref == ("r", "c0")] == [1, 2]


def test_what_comes_behind_what_is_held_is_not_taken_before_it() -> None:
    """All of `a`'s that was sent on has come, but not all of `b`'s: what is held goes on waiting,
    and so does what comes of `a`'s now."""
    world = World(3)
    world.create(*thing("a", 0, {}))
    world.create(*thing("r", 1, {}))
    world.create(*thing("x", 1, {}))
    world.create(*thing("y", 1, {}, g=(("x", "d0"),)))
    world.create(*thing("z", 0, {}))
    world.create(*thing("b", 2, {}))
    reads = {"ga": (("a", "d0"),), "gb": (("b", "d0"),)}
    world.replace(*thing("r", 1, {"c0": ("ga",), "c1": ("gb",)}, **reads))
    world.finish()
    world.replace(*thing("r", 1, {"c0": ("ga",), "c1": ("gb",)}, **reads, h=(("x", "d0"),)))
    moved = world.lengths()[1]
    world.run([None, moved, 0])  # a's end, and b's, come to where r was
    world.put(("a", "d0"), 1, 1)
    world.run([None, moved, None])  # it is held
    world.run([None, moved + 1, None])
    world.put(("a", "d0"), 2, 2)
    world.run([None, moved + 1, None])
    world.run([None, moved + 1, None])
    world.finish()
    oracle = assert_lawful(world)
    assert [at for ref, at, _ in oracle.order if ref == ("r", "c0")] == [1, 2]


def test_what_is_sent_on_is_none_of_who_has_named_the_stream_anew() -> None:
    """It was made before the begin of the version that is in force."""
    world = World(3)
    world.create(*thing("a", 0, {}))
    world.create(*thing("r", 1, {"c0": ("g",)}, g=(("a", "d0"),)))
    world.create(*thing("x", 1, {}))
    world.create(*thing("y", 1, {}, g=(("x", "d0"),)))
    world.finish()
    joined, (_, released, here) = (("x", "d0"),), world.lengths()
    world.put(("a", "d0"), 1, 1)  # comes to where r was
    world.replace(*thing("r", 1, {"c0": ("g",)}, g=(("a", "d0"),), h=joined))
    world.replace(*thing("r", 1, {}, h=joined))
    world.replace(*thing("r", 1, {"c0": ("g",)}, g=(("a", "d0"),), h=joined))
    world.put(("a", "d0"), 2, 2)
    for _ in range(2):  # all is told, and nothing of it heeded where r is now
        world.run([None, released + 1, here])
    world.run([None, None, here])  # what has come to where r was is sent on behind that
    world.finish()
    assert_lawful(world)
