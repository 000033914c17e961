"""Who has used up a quota of the hour: its composites rest, and nobody else notices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from falling_postgres import Postgres
from hypothesis import given
from hypothesis import strategies as st
from memory import MemoryPlatform
from oracle import Composite, Object
from python_evaluator import PythonEvaluator
from serial_order import LAW, Generous, define

from pipeline.accounting.metering import Meter
from pipeline.engine import Engine
from pipeline.sharing.fairness import Fairness
from pipeline.sharing.rules import its_quota
from pipeline.sharing.used_up import SECONDS, UsedUp
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.model import StreamRef
from servioticy.domain.quotas import RESTING, quotas
from servioticy.domain.records import UpdateRecord
from servioticy.settings import Settings

PROVIDER = Object("so", ("d0",), (Composite("c0", ("d0",), None),))
CONSUMER = Object(
    "other",
    ("own",),
    (Composite("x", ("g",), None), Composite("y", ("x",), None), Composite("z", ("own",), None)),
    {"g": (("so", "d0"),)},
)
CODE = "function(%s){return 1}"
CODES = {
    (thing.id, each.name): CODE % ",".join(each.reads)
    for thing in (PROVIDER, CONSUMER)
    for each in thing.composites
}


class Whims(UsedUp):
    """Says at random that the consumer has used up a quota; at last it has not."""

    def __init__(self, answers: list[bool], tenant: int) -> None:
        super().__init__({})
        self._answers = iter(answers)
        self._tenant = tenant

    def refused(self, _store: Any) -> Any:
        rests = next(self._answers, False)
        return {self._tenant: its_quota("computations")} if rests else {}


class World:
    """A provider, a consumer of its stream, and a task that may die."""

    def __init__(self) -> None:
        self.platform = MemoryPlatform()
        tenants = self.platform.tenants
        self.provider, self.consumer = (
            tenants.tenant_of(tenants.create_tenant(name)) or 0 for name in ("p", "c")
        )
        define(PROVIDER, CODES, self.provider, self.platform)
        define(CONSUMER, CODES, self.consumer, self.platform)
        self.postgres = Postgres(self.platform)

    def begin(self, used_up: UsedUp) -> None:
        self.platform.state.claims.clear()
        self.task = Task(
            0,
            self.postgres.store(self.platform.partition_store(argument_names)),
            lambda: self.platform.output(0),
            Engine(
                {"javascript": PythonEvaluator(lambda trigger, _values: trigger.timestamp)},
                1000,
                1000,
            ),
            Fairness(Generous(1.0), used_up=used_up),
            Meter(dict),
        )

    def put(self, timestamp: int, so: str = "so", stream: str = "d0") -> None:
        text = b'{"channels":{"v":{"current-value":%d}},"lastUpdate":%d}' % (timestamp, timestamp)
        self.platform.log.append(0, UpdateRecord(so, stream, timestamp, msgspec.Raw(text)))

    def run(self) -> None:
        """Until nothing is left: what crosses the border comes through the log."""
        log, first = self.platform.state.log[0], -1
        while first < len(log):
            progress = self.platform.state.progress.get(0)
            first = progress.next_offset if progress else 0
            self.task.take([Row(at, log[at]) for at in range(first, len(log))])

    def emitted(self) -> dict[str, list[int]]:
        """The timestamps that subscribers got, by stream."""
        found: dict[str, list[int]] = {}
        for _partition, each in self.platform.state.emitted_to:
            found.setdefault(each.stream, []).append(each.timestamp)
        return found

    def verdicts(self, so: str, stream: str) -> dict[str, int]:
        number = self.platform.state.streams[so, stream]
        stored = self.platform.state.verdicts.items()
        return {kind: times for (each, kind), (times, _) in stored if each == number}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def small(**most: int) -> Any:
    named = {name.replace("_", "-"): each for name, each in most.items()}
    every = quotas(Settings())
    return {name: each._replace(most=named.get(name, each.most)) for name, each in every.items()}


def test_composites_of_who_has_used_up_a_quota_rest_and_the_provider_s_go_on() -> None:
    world, clock = World(), Clock()
    world.begin(UsedUp(small(computations=2), clock))
    world.put(1)
    world.run()
    world.task.end()  # x and y: both are on the account
    clock.now = SECONDS
    world.put(2)
    world.put(3)
    world.run()

    assert world.emitted() == {"d0": [1, 2, 3], "c0": [1, 2, 3], "x": [1], "y": [1]}
    assert world.verdicts("other", "x") == {"emitted": 1, "over-quota": 2}
    assert world.verdicts("other", "y") == {"emitted": 1}


def test_its_own_updates_that_were_accepted_are_computed() -> None:
    world, clock = World(), Clock()
    world.begin(UsedUp(small(computations=1), clock))
    world.put(1, "other", "own")
    world.run()
    world.task.end()
    clock.now = SECONDS
    world.put(2)
    world.put(2, "other", "own")
    world.run()

    assert world.emitted()["z"] == [1, 2]
    assert "x" not in world.emitted()


def test_it_is_asked_now_and_then_and_says_which_quota() -> None:
    class Store:
        asked: list[list[int]]

        def used_up(self, most: Mapping[str, int]) -> dict[int, str]:
            self.asked.append([most[each] for each in RESTING])
            return {7: "processor-seconds"} if len(self.asked) == 1 else {}

    store, clock = Store(), Clock()
    store.asked = []
    used_up = UsedUp(small(computations=5, processor_seconds=6, stored_bytes=7), clock)

    for _ in range(3):
        assert used_up.refused(store) == {7: its_quota("processor-seconds")}  # type: ignore[arg-type]
    clock.now += SECONDS
    assert used_up.refused(store) == {}  # type: ignore[arg-type]
    assert store.asked == [[5, 6, 7], [5, 6, 7]]


steps = st.lists(
    st.sampled_from(["put", "put", "run"]) | st.integers(1, 3), min_size=1, max_size=30
)


@LAW
@given(steps, st.lists(st.booleans(), max_size=20))
def test_whatever_rests_when_history_is_what_subscribers_got(
    steps: list[str | int], answers: list[bool]
) -> None:
    """Postgres forgets, the worker dies, and what is computed again rests another time or not."""
    world, at = World(), 0
    world.begin(Whims(answers, world.consumer))
    for step in [*steps, "run"]:
        if step == "put":
            at += 1
            world.put(at)
        elif step == "run":
            world.run()
        else:
            world.postgres.fall(int(step))
            world.begin(Whims(answers[at:], world.consumer))

    state = world.platform.state
    names = {number: StreamRef(*ref) for ref, number in state.streams.items()}
    stored = {(names[stream].stream, timestamp) for stream, timestamp in state.updates}
    got = {(each.stream, each.timestamp) for _partition, each in state.emitted_to}
    assert stored == got
    for provided in ("d0", "c0"):
        assert {(provided, n + 1) for n in range(at)} <= stored
