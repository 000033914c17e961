"""Slow scripts on somebody's stream: its tree is whole, light ones are, and others do not wait."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from memory import MemoryPlatform
from oracle import Composite, Object
from pipeline.sharing.strangers import Strangers
from put_off_runs import CODE, append
from serial_order import define, functions

from pipeline.engine import Engine
from pipeline.sharing.fairness import Fairness
from pipeline.sharing.pace import Pace
from pipeline.sharing.shares import Shares
from pipeline.task import Task
from pipeline.work import Row
from sandbox import ProcessorSeconds, argument_names

STRANGERS, UPDATES, A_SECOND = 6, 60, 6.0
SLOW_SECONDS, LIGHT_SECONDS = 0.05, 0.0005
SHARE = 0.5


class Costly:
    """An evaluator whose clock goes on by what a tenant's scripts take, each time."""

    def __init__(self, evaluator, costs: dict[str, float]) -> None:
        self._evaluator, self._costs = evaluator, costs
        self._used: Counter[str] = Counter()

    def evaluate(self, tenant, calls, within=None):
        self._used[tenant] += self._costs.get(tenant, 0.0) * sum(len(each.trees) for each in calls)
        return self._evaluator.evaluate(tenant, calls, within)

    def processor_seconds(self, tenant):
        return ProcessorSeconds(self._used[tenant])


class World:
    """A provider, slow and light strangers on its stream, and somebody who has nothing to do
    with them."""

    def __init__(self) -> None:
        self.platform, self.now = MemoryPlatform(), 100.0
        read = Composite("c", ("g",), lambda values: values[0])
        on_it = {"g": (("provider", "d0"),)}
        own = Composite("c", ("d0",), lambda values: values[0])
        slow = [Object(f"slow{n}", (), (read,), on_it) for n in range(STRANGERS)]
        light = Object("light", (), (read,), on_it)
        things = [Object(name, ("d0",), (own,)) for name in ("provider", "other")]
        self.tenants: dict[str, int] = {}
        for each in (*things, light, *slow):
            tenant = self.platform.tenants.create_tenant(each.id)
            self.tenants[each.id] = self.platform.tenants.tenant_of(tenant)
            code = CODE if each in things else CODE.replace("d0", "g")
            define(each, {(each.id, "c"): code}, self.tenants[each.id], self.platform)
        costs = {str(self.tenants[each.id]): SLOW_SECONDS for each in slow}
        costs[str(self.tenants["light"])] = LIGHT_SECONDS
        evaluator = Costly(functions([*things, light, *slow]), costs)
        self.pace = Pace()
        fairness = Fairness(Shares(SHARE, self._clock), self.pace, Strangers(SHARE, self._clock))
        store = self.platform.partition_store(argument_names)
        engine = Engine({"javascript": evaluator}, 100, 10**6)
        output = self.platform.output
        self.task = Task(0, store, lambda: output(0), engine, fairness)
        self.taken = 0
        self.late: defaultdict[str, set[int]] = defaultdict(set)
        """Offsets of what was put off, by Service Object."""

    def _clock(self) -> float:
        return self.now

    def put(self, name: str, at: int) -> None:
        append(self.platform, [((name, "d0"), at, at)])
        log = self.platform.state.log[0]
        self.task.take([Row(offset, log[offset]) for offset in range(self.taken, len(log))])
        self.taken = len(log)
        for each in self.platform.state.put_off.values():
            self.late[each.service_object].add(each.offset)

    def verdicts(self) -> dict[str, Counter[str]]:
        """By Service Object and kind."""
        state = self.platform.state
        names = {number: owner for (owner, _stream), number in state.streams.items()}
        found: dict[str, Counter[str]] = {name: Counter() for name in self.tenants}
        for (stream, kind), (times, _last) in state.verdicts.items():
            found[names[stream]][kind] += times
        return found


@pytest.fixture(scope="module")
def world() -> World:
    """Where updates of both have come for a while, turn by turn."""
    made = World()
    for at in range(1, UPDATES + 1):
        made.put("provider", at)
        made.put("other", at)
        made.now += 1 / A_SECOND
    for _ in range(100):
        made.task.take([])
    return made


def test_the_tree_of_the_provider_is_whole(world: World) -> None:
    assert world.verdicts()["provider"] == {"emitted": UPDATES}


def test_so_is_what_a_light_stranger_makes_of_it(world: World) -> None:
    assert world.verdicts()["light"] == {"emitted": UPDATES}


def test_slow_strangers_have_one_share_together_and_equal_parts_of_it(world: World) -> None:
    emitted = [world.verdicts()[f"slow{n}"]["emitted"] for n in range(STRANGERS)]
    refused = [world.verdicts()[f"slow{n}"]["over-share"] for n in range(STRANGERS)]

    assert all(some + others == UPDATES for some, others in zip(emitted, refused, strict=True))
    assert SLOW_SECONDS * sum(emitted) <= SHARE * (UPDATES / A_SECOND + 2) * 1.2
    assert min(emitted) >= max(emitted) - 2


def test_others_do_not_wait_for_them(world: World) -> None:
    assert world.pace.is_slow(world.tenants["provider"])
    assert not world.pace.is_slow(world.tenants["other"])
    assert len(world.late["provider"]) > UPDATES / 2
    assert len(world.late["other"]) <= 1, "it was not known at first"
    assert world.verdicts()["other"] == {"emitted": UPDATES}
