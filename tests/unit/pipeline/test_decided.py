"""A value that a subscriber got is a value that history has, whatever is computed again."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from falling_postgres import Postgres
from hypothesis import example, given, settings
from hypothesis import strategies as st
from memory import MemoryPlatform
from neighbours import Neighbours
from oracle import Composite, Object
from plain_trees import Ends
from python_evaluator import PythonEvaluator, Trigger
from serial_order import define

from pipeline.engine import Engine
from pipeline.state.decided import Decided
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from sandbox.trees import Kept, Made
from servioticy.domain.evaluators.steps import Outcome
from servioticy.domain.model import SensorUpdate, StreamRef
from servioticy.domain.records import EmittedRecord, UpdateRecord


def fickle(seed: int) -> PythonEvaluator:
    """An evaluator that never gives the same twice: a new value, or a timeout."""
    chance = random.Random(seed)

    def compute(_trigger: Trigger, _values: list[bytes | None]) -> int:
        if chance.random() < 0.4:
            raise Ends("timeout")
        return chance.randrange(10**12)

    return PythonEvaluator(compute)


THINGS = Object(
    "so",
    ("d0", "d1"),
    (
        Composite("c0", ("d0",), None),
        Composite("c1", ("c0", "d0"), None),
        Composite("c2", ("c1", "d1"), None, True),
        Composite("c3", ("c2", "c3"), None),
        Composite("c4", ("c0", "c3"), None, False, True),
    ),
)
CODES = {
    ("so", each.name): f"function({', '.join(each.reads)}){{return 1}}"
    for each in THINGS.composites
}

puts = st.tuples(st.just("put"), st.sampled_from(["d0", "d1", "c1"]), st.integers(0, 30))
runs = st.tuples(st.just("run"), st.integers(1, 5))
falls = st.tuples(st.just("fall"), st.integers(1, 4), st.integers(0, 8))


class World:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.platform = MemoryPlatform()
        tenant = self.platform.tenants.tenant_of(self.platform.tenants.create_tenant("t"))
        define(THINGS, CODES, tenant, self.platform)
        self.postgres = Postgres(self.platform)
        self.begin()

    def begin(self) -> None:
        self.seed += 1
        self.task = Task(
            0,
            self.postgres.store(self.platform.partition_store(argument_names)),
            lambda: self.platform.output(0),
            Engine({"javascript": fickle(self.seed)}, 1000, 1000),
        )

    def put(self, stream: str, timestamp: int) -> None:
        text = b'{"channels":{"v":{"current-value":%d}},"lastUpdate":%d}' % (timestamp, timestamp)
        self.platform.log.append(0, UpdateRecord("so", stream, timestamp, msgspec.Raw(text)))

    def run(self, most: int = 1000) -> None:
        """One batch of at most so many records."""
        log = self.platform.state.log[0]
        progress = self.platform.state.progress.get(0)
        first = progress.next_offset if progress else 0
        self.task.take([Row(n, log[n]) for n in range(first, len(log))][:most])

    def fall(self, forgotten: int, unsent: int) -> None:
        """Postgres forgets, the worker dies; the last it emitted is not in the topic."""
        state = self.platform.state
        self.postgres.fall(forgotten)
        noted = state.progress[0].emitted_offset if 0 in state.progress else 0
        while unsent and state.emitted_to:
            place = state.emitted_to[-1][1].place
            if place is None or place[0] < noted:
                break  # emitted again, or known to be there
            state.emitted_to.pop()
            unsent -= 1
        self.begin()

    def got(self) -> dict[tuple[str, int, int], set[bytes]]:
        """What subscribers got, by stream, timestamp and place of origin."""
        found: dict[tuple[str, int, int], set[bytes]] = {}
        for _partition, each in self.platform.state.emitted_to:
            if each.place is not None:
                key = (each.stream, each.timestamp, each.place)
                found.setdefault(key, set()).add(bytes(each.update))
        return found


AGAIN = [
    *[("put", stream, at) for stream, at in (("d0", 0), ("d1", 1), ("d0", 1))],
    *[("fall", 1, 0), ("run", 1), ("run", 2), ("fall", 1, 0), ("fall", 1, 0), ("run", 1)],
    *[("fall", 1, 0), ("fall", 1, 0), ("run", 2), ("fall", 1, 0), ("fall", 1, 0), ("fall", 1, 4)],
]
"""Computed again, and emitted again, less of it than the first time."""


@settings.get_profile("law")
@example(AGAIN, 390032)
@given(st.lists(puts | puts | runs | falls, max_size=40), st.integers(0, 2**32))
def test_what_was_emitted_is_stored_as_it_was(steps: list[Any], seed: int) -> None:
    """However often it is computed again, and with whatever outcome."""
    world = World(seed)
    for kind, *rest in [*steps, ("run", 1000)]:
        getattr(world, kind)(*rest)

    state = world.platform.state
    names = {number: stream for (_so, stream), number in state.streams.items()}
    history = {
        (names[stream], timestamp): (row.offset, row.document)
        for (stream, timestamp), (_partition, row) in state.updates.items()
    }
    for (stream, timestamp, place), documents in world.got().items():
        assert len(documents) == 1, "two values for one computation"
        offset, document = history[stream, timestamp]
        # A later update with the same timestamp takes its place in history.
        assert offset > place[0] or document in documents or _took_over(world, place, stream)


def _took_over(world: World, place: tuple[int, ...], stream: str) -> bool:
    """Whether the same tree made another value of the stream later, with the same timestamp."""
    return any(
        each.stream == stream and each.place is not None and each.place > place
        for _partition, each in world.platform.state.emitted_to
        if each.place is not None and each.place[0] == place[0]
    )


def a_tree(timestamp: int) -> list[EmittedRecord]:
    text = msgspec.Raw(b'{"v":%d}' % timestamp)
    places = {"d0": (7, 0), "c0": (7, 1, 0)}
    return [EmittedRecord("so", name, 1, 1, timestamp, text, at) for name, at in places.items()]


def root(timestamp: int) -> SensorUpdate:
    return SensorUpdate(StreamRef("so", "d0"), timestamp, b'{"v":%d}' % timestamp)


def test_what_was_emitted_of_a_lost_log_decides_nothing() -> None:
    """A log that goes on after a loss gives the same offsets to other updates."""
    computation = StreamRef("so", "c0"), (7, 1, (0,))
    decided = Decided(a_tree(5))
    decided.meets(7, 1, root(5))
    assert decided.covers(7, 1)
    assert decided.knows(1, *computation)

    decided.meets(7, 1, root(6))
    assert not decided.covers(7, 1)
    assert not decided.knows(1, *computation)

    both = Decided([*a_tree(5), *a_tree(6)[:1]])
    both.meets(7, 1, root(6))
    assert both.covers(7, 1)
    assert not both.knows(1, *computation)


def test_of_what_subscribers_did_not_get_nothing_is_kept_either() -> None:
    """Or what they get next would count something of which they got nothing."""
    (emitted, _), then = a_tree(5), EmittedRecord("so", "d0", 1, 1, 6, msgspec.Raw(b"{}"), (8, 0))
    decided = Decided([emitted, then])
    made = Outcome([Made(0, 0, 0, 5, b"{}")], "emitted", kept=[Kept(0, b"k", b"v")])

    found = decided.outcome(1, StreamRef("so", "c0"), (7, 1, (0,)), made)

    assert (found.made, found.kind, found.kept) == ((), "timeout", ())


def test_a_log_that_lost_its_end_goes_on_with_its_own_values() -> None:
    world = World(1)
    for timestamp in (1, 2):
        world.put("d0", timestamp)
    world.run()
    state = world.platform.state
    assert {each.timestamp for _partition, each in state.emitted_to} == {1, 2}
    del state.log[0][-2:]
    state.progress[0].next_offset = state.progress[0].emitted_offset = len(state.log[0])
    before = len(state.emitted_to)
    for timestamp in (3, 4):
        world.put("d0", timestamp)
    state.claims.clear()
    world.begin()
    world.run()

    again = {each.timestamp for _partition, each in state.emitted_to[before:]}
    assert again >= {3, 4}
    assert not again & {1, 2}


@pytest.mark.parametrize("forgotten", range(1, 7))
@pytest.mark.parametrize("seed", range(4))
def test_trees_that_came_over_a_border_end_as_they_did(forgotten: int, seed: int) -> None:
    """Each tenant's by itself: they are of one record, and of several transactions."""
    chance = random.Random(seed)

    def compute(_trigger: Trigger, _values: list[bytes | None]) -> int:
        if chance.random() < 0.3:
            raise Ends("timeout")
        return chance.randrange(10**12)

    world = Neighbours(1, most=1, compute=compute)
    world.define("p", "x", "s", d=("s",))
    for tenant in "qrt":
        world.define(tenant, f"by{tenant}", "own", c=("x/s", "x/d"), e=("c",))
    world.run()
    world.postgres.wait_for_the_disk()
    for at in (1, 2):
        world.put("x/s", at)
        world.run()
    world.fall(forgotten)
    world.run()

    state = world.state
    got: dict[tuple[str, str, int], set[bytes]] = {}
    for each in state.emitted:
        key = each.service_object, each.stream, each.timestamp
        got.setdefault(key, set()).add(bytes(each.update))
    stored = {
        (*ref, at): row.document
        for ref, number in state.streams.items()
        for (stream, at), (_partition, row) in state.updates.items()
        if stream == number
    }
    assert stored.keys() == got.keys()
    assert {key: {text} for key, text in stored.items()} == got
