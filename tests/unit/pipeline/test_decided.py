"""A value that a subscriber got is a value that history has, whatever is computed again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import Composite, Object
from test_joining_components import Postgres
from test_serial_law import define

from pipeline.engine import Engine
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from sandbox.program import Call, Computation, Fault, Outcome, Value
from servioticy.domain.records import UpdateRecord
from servioticy.memory import MemoryPlatform


class Fickle:
    """A sandbox that never gives the same twice: a new value, or a timeout."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def run(
        self, _tenant: str, calls: Sequence[Call], _within: float | None = None
    ) -> list[list[Outcome]]:
        return [list(self._fold(call)) for call in calls]

    def _fold(self, call: Call) -> Iterator[Outcome]:
        """The rules that a sandbox keeps: what is stale has no value, outputs only advance."""
        last = call.previous_timestamp
        for step in call.steps:
            if not isinstance(step, Computation):
                last = step.timestamp if last is None else max(last, step.timestamp)
                yield None
            elif last is not None and step.timestamp <= last:
                yield Fault("stale", "")
            elif self._chance.random() < 0.4:
                yield Fault("timeout", "")
            else:
                last = step.floor if last is None else max(last, step.floor)
                value = self._chance.randrange(10**12)
                yield Value(last, b'{"channels":{"v":{"current-value":%d}}}' % value)


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
            Engine(Fickle(self.seed), 1000, 1000),
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
