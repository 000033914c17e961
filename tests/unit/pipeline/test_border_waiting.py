"""What comes over borders waits like all else of its tenant, and no longer than it may."""

from __future__ import annotations

import contextlib

import pytest
from neighbours import Crash, Neighbours
from put_off_runs import Whims

from pipeline.batching import schedule
from pipeline.limits import NO_LIMITS, Limits
from servioticy.domain.records import ReleaseRecord


class World(Neighbours):
    """`x` is read by `r` of one tenant and `t` of another; who is over a share, the test says."""

    def __init__(self, limits: Limits = NO_LIMITS) -> None:
        super().__init__(1, limits=limits)
        self.shares = Whims([])
        self.shares.contested = False
        self.start()
        self.define("p", "x", "s", d=("s",))
        self.define("q", "r", "own", c=("x/s",), k=("own", "x/s"))
        self.define("z", "t", "own", c=("x/s",))
        self.run()

    def over(self, *tenants: str) -> None:
        self.shares.always = {self.tenant(each) for each in tenants}

    def send(self, *puts: tuple[str, int]) -> None:
        """Until the log is read; what waits may go on waiting."""
        for ref, at in puts:
            self.put(ref, at)
        while self.state.progress[0].next_offset < len(self.state.log[0]):
            self.take(0)

    def waiting(self) -> dict[str, int]:
        names = {number: name for name, number in self.tenants.items()}
        waiting = self.tasks[0]._begun.partition.waiting  # type: ignore[union-attr]
        return {names[each]: count for each, count in waiting.items()}


@pytest.fixture
def world() -> World:
    return World()


def test_nobody_waits_for_a_reader_that_is_over_its_share(world: World) -> None:
    world.over("q")
    world.send(("x/s", 1), ("x/s", 2))

    assert world.got("x/d") == world.got("t/c") == [1, 2]
    assert world.got("r/c") == []
    assert world.waiting() == {"q": 2}
    assert {key.tree for _partition, key in world.state.put_off} == {world.tenant("q")}

    world.over()
    world.run()
    assert world.got("r/c") == [1, 2]
    assert world.known("r", "x/s") == 2
    assert world.verdicts("r/c") == {"emitted": 2}


def test_what_is_its_own_comes_behind_what_waits_of_others(world: World) -> None:
    world.over("q")
    world.send(("x/s", 1))
    world.over()
    world.put("r/own", 5)
    world.put("x/s", 3)
    world.run()

    assert world.got("r/c") == [1, 3]
    assert world.got("r/k") == [1, 5], "the stream of the other wakes it, too"
    assert world.verdicts("r/k") == {"emitted": 2, "stale": 1}


@pytest.mark.parametrize("number", range(1, 7))
@pytest.mark.parametrize("death", ["before", "after"])
def test_what_waited_is_computed_once_whoever_dies(world: World, number: int, death: str) -> None:
    world.over("q", "z")
    world.send(("x/s", 1), ("x/s", 2), ("r/own", 3))
    world.over()
    with world.dying(number, death):
        world.run()

    for ref in ("r/c", "t/c"):
        assert world.stored(ref) == [1, 2]
        assert set(world.got(ref)) == {1, 2}
        assert world.verdicts(ref) == {"emitted": 2}
    assert world.known("r", "x/s") == 2
    assert not world.state.put_off.keys() - world.state.taken_up


def test_who_is_too_far_behind_is_told_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its own updates none is left out: its quota bounds those."""
    monkeypatch.setattr(schedule, "MAX_WAITING", 2)
    world.over("q")
    for at in range(1, 6):
        world.send(("x/s", at))
    world.send(("r/own", 9))

    assert world.waiting() == {"q": 3}
    assert world.verdicts("r/c") == world.verdicts("r/k") == {"behind": 3}
    told = world.told("r/c", "behind")
    assert (told["trigger"], told["timestamp"]) == ("x/s", 5)
    assert "10000 records" in told["message"]
    assert world.got("t/c") == [1, 2, 3, 4, 5]

    world.over()
    world.run()
    assert world.got("r/c") == [1, 2]
    assert world.got("r/k")[-1] == 9
    world.send(("x/s", 10))
    assert world.got("r/c") == [1, 2, 10]


def test_what_is_left_out_does_not_come_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "MAX_WAITING", 0)
    world.over("q")
    world.send(("x/s", 1))
    world.start()
    world.over()
    world.run()

    assert world.got("r/c") == []
    assert world.verdicts("r/c") == {"behind": 1}
    assert not world.state.put_off


def test_a_tree_beyond_a_limit_is_cut_by_itself() -> None:
    """The provider's has its own limits, and so has that of each other reader."""
    world = World(NO_LIMITS._replace(computations=1))
    world.send(("x/s", 1))

    assert world.got("r/c") == [1]
    assert world.verdicts("r/k") == {"computation-limit": 1}
    assert world.got("t/c") == world.got("x/d") == [1]


def test_an_end_takes_effect_behind_what_waits(world: World) -> None:
    """What was sent before it may be read, though it is computed later."""
    world.over("q")
    world.send(("x/s", 1))
    world.define("p", "x", "s", public=False, d=("s",))
    world.send(("x/s", 2))
    assert world.verdicts("r/c") == {}

    world.over()
    world.run()
    assert world.got("r/c") == [1]
    assert world.verdicts("r/c") == {"emitted": 1, "revoked": 1}
    assert world.verdicts("t/c") == {"emitted": 1, "revoked": 1}


def moving() -> tuple[Neighbours, int, int]:
    """`r` has moved. Of three updates the second was sent to where it was, but came behind that.

    Returns the partitions in which it was and is. The first one has let it go and does no more.
    """
    world = Neighbours(3)
    world.define("p", "x", "s")
    world.define("q", "r", "own", c=("x/s",), k=("own", "x/s"))
    world.define("q", "big", "own")
    world.define("q", "bigger", "own", c=("big/own",))
    world.run()
    provider, old = (world.partition_of(each) for each in ("x", "r"))
    assert len({provider, old, world.partition_of("big")}) == 3
    world.put("x/s", 1)
    world.take(provider)
    world.put("x/s", 2)
    world.define("q", "bigger", "own", c=("big/own", "r/own"))
    world.put("x/s", 3)
    world.take(provider)
    records = [record for _offset, record in world.platform.records(old)]
    (release,) = (n for n, each in enumerate(records) if isinstance(each, ReleaseRecord))
    world.ends[old] = release + 1
    return world, old, world.partition_of("r")


def test_what_comes_before_the_rest_of_a_move_is_held_until_that_has_come() -> None:
    world, _old, new = moving()
    provider = world.partition_of("x")
    world.take(new)
    world.put("x/s", 4)
    world.take(provider)
    world.take(new)
    assert [each.held for each in world.state.put_off.values()] == [True, True]
    assert world.got("r/c") == [1]
    assert world.tasks[new].patience > 0, "nobody asks for what is held"

    world.ends.clear()
    world.run()
    assert world.got("r/c") == [1, 2, 3, 4]
    assert world.known("r", "x/s") == 4
    assert not world.state.put_off.keys() - world.state.taken_up


@pytest.mark.parametrize("number", range(1, 12))
@pytest.mark.parametrize("death", ["before", "after"])
def test_what_is_held_comes_once_whoever_dies(number: int, death: str) -> None:
    world, _old, new = moving()
    with world.dying(number, death):
        with contextlib.suppress(Crash):
            world.take(new)
        world.start()
        world.put("x/s", 4)
        world.ends.clear()
        world.run()

    assert world.stored("r/c") == [1, 2, 3, 4]
    assert world.verdicts("r/c") == {"emitted": 4}
    assert not world.state.put_off.keys() - world.state.taken_up


def test_what_is_its_own_does_not_wait_for_what_is_held() -> None:
    """The other tenant can delay nothing that it does not send."""
    world, _old, new = moving()
    world.take(new)
    world.put("r/own", 7)
    world.take(new)

    assert 7 in world.got("r/k")
    assert [each.held for each in world.state.put_off.values()] == [True]


def test_who_sends_is_not_behind_all_that_read(world: World) -> None:
    """They had their last turns before its own, each of them."""
    world.over("q", "z")
    world.send(("x/s", 1))
    world.over("p", "q", "z")
    world.send(("x/s", 2))
    begun = world.tasks[0]._begun
    assert begun is not None
    late, waiting = begun.schedule._late, begun.partition.waiting
    sender, turns = world.tenant("p"), []
    late._turns._number = 1
    late._turns.had(sender)  # the last one
    for _ in range(4):
        turns.append(late.next(waiting.keys()))
        late._turns.had(turns[-1])  # as it has been taken up

    assert [each == sender for each in turns] in ([True, False] * 2, [False, True] * 2)
    assert len(set(turns)) == 3, "readers by turns, too"
