"""Two busy components are joined by a composite over both: nothing wrong, nothing missing.

Two partitions, each with its task, and devices whose updates may still go to the partition
of before. Where the log is read in which portions is up to chance.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter, defaultdict

import msgspec
from falling_postgres import Fallen, Postgres
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import MemoryPlatform
from oracle import Composite, Object, Oracle
from serial_order import define, javascript, python, value_of

from pipeline.engine import Engine
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.evaluators.evaluator import Evaluators
from servioticy.domain.records import AcquireRecord, ReleaseRecord, UpdateRecord

NUMBERS = (3, 7, 11)
CODE = python(*NUMBERS)
STREAMS = ("d0", "d1")
LEFT, RIGHT = (
    Object(id_, STREAMS, (Composite("c0", ("d0", "d1", "c0"), CODE),)) for id_ in ("left", "right")
)
JOIN = Object(
    "join",
    (),
    (Composite("c0", ("l", "r", "c0"), CODE), Composite("c1", ("c0", "r"), CODE)),
    {"l": (("left", "c0"),), "r": (("right", "c0"),)},
)
OBJECTS = (LEFT, RIGHT, JOIN)
CODES = {(o.id, c.name): javascript(c.reads, *NUMBERS) for o in OBJECTS for c in o.composites}

puts = st.tuples(
    st.just("put"),
    st.sampled_from([LEFT.id, RIGHT.id]),
    st.sampled_from([*STREAMS, "c0"]),
    st.integers(0, 25),
    st.integers(0, 99),
    st.booleans(),
)
runs = st.tuples(st.just("run"), st.integers(0, 1), st.integers(1, 9))
falls = st.tuples(st.just("fall"), st.integers(0, 4), st.integers(0, 1), st.integers(0, 2))
steps = st.lists(puts | runs, max_size=30)
steps_and_falls = st.lists(puts | runs | runs | falls, max_size=30)


class Partitions:
    """A platform of two partitions with a component in each, and the two tasks."""

    def __init__(self, evaluators: Evaluators) -> None:
        self.platform = MemoryPlatform(2)
        self.tenant = self.platform.tenants.tenant_of(self.platform.tenants.create_tenant("t"))
        self.evaluators = evaluators
        self.postgres = Postgres(self.platform)
        self.define(LEFT)
        self.define(RIGHT)
        self.routes = self.current_routes()
        assert sorted(self.routes.values()) == [0, 1]
        self.begin()

    def begin(self) -> None:
        """New tasks, which read from the stored progress on."""
        self.tasks = [
            Task(
                number,
                self.postgres.store(self.platform.partition_store(argument_names)),
                lambda number=number: self.platform.output(number),
                Engine(
                    self.evaluators,
                    1000,
                    1000,
                    sleep=lambda _seconds, other=1 - number: self.run(other),
                ),
            )
            for number in range(2)
        ]
        progress = self.platform.state.progress
        self.read = [progress[n].next_offset if n in progress else 0 for n in range(2)]

    def define(self, thing: Object) -> None:
        define(thing, CODES, self.tenant, self.platform)
        self.postgres.wait_for_the_disk()

    def current_routes(self) -> dict[str, int]:
        kept = self.platform.state.service_objects
        return {id_: kept[id_].route_partition for id_ in (LEFT.id, RIGHT.id)}

    def take(self, step) -> None:
        if step[0] == "run":
            self.run(*step[1:])
            return
        if step[0] == "fall":
            self.fall(*step[1:])
            return
        _put, owner, stream, timestamp, value, late_to_know = step
        body = {"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp}
        update = msgspec.Raw(json.dumps(body, separators=(",", ":")).encode())
        routes = self.routes if late_to_know else self.current_routes()
        record = UpdateRecord(owner, stream, timestamp, update)
        self.platform.log.append(routes[owner], record)

    def run(self, number: int, most: int = 1000) -> None:
        first, log = self.read[number], self.platform.state.log[number]
        rows = [Row(offset, log[offset]) for offset in range(first, len(log))][:most]
        self.read[number] += len(rows)
        self.tasks[number].take(rows)

    def fall(self, forgotten: int, running: int, stores: int) -> None:
        """While a task works, at its n-th transaction from now: what it has sent stays sent."""
        self.postgres.stores_left = stores
        with contextlib.suppress(Fallen):
            self.run(running)
        self.postgres.stores_left = None
        self.postgres.fall(forgotten)
        self.begin()

    def finish(self) -> None:
        while any(self.read[n] < len(self.platform.state.log[n]) for n in range(2)):
            for number in range(2):
                self.run(number)


def serial(partitions: Partitions) -> Oracle:
    """What the log says: each component by itself, then both in the partition of the join."""
    oracle = Oracle([LEFT, RIGHT])
    logs = [[record for _, record in partitions.platform.records(n)] for n in range(2)]
    (old,) = (n for n in range(2) if any(isinstance(r, ReleaseRecord) for r in logs[n]))
    release = next(n for n, r in enumerate(logs[old]) if isinstance(r, ReleaseRecord))
    acquire = next(n for n, r in enumerate(logs[1 - old]) if isinstance(r, AcquireRecord))
    late = [n for n, r in enumerate(logs[old]) if n > release and isinstance(r, UpdateRecord)]
    joined = [r for r in logs[1 - old][acquire:] if isinstance(r, UpdateRecord)]
    joined = [r for n, r in enumerate(joined) if not _comes_again(r, joined[:n])]
    assert [r.forwarded for r in joined if r.forwarded is not None] == [(old, n) for n in late]
    apart = [*logs[old][:release], *logs[1 - old][:acquire]]
    for records, objects in ((apart, [LEFT, RIGHT]), (joined, OBJECTS)):
        oracle.objects = list(objects)
        for each in records:
            if isinstance(each, UpdateRecord):
                value = value_of(bytes(each.update))
                oracle.take((each.service_object, each.stream), each.timestamp, value)
    return oracle


def _comes_again(record: UpdateRecord, before: list[UpdateRecord]) -> bool:
    """Whether it was forwarded twice, by a task that had forgotten the first time."""
    return record.forwarded is not None and record.forwarded in [r.forwarded for r in before]


def by_stream(updates) -> dict:
    found = defaultdict(list)
    for ref, timestamp, value in updates:
        found[ref].append((timestamp, value))
    return found


@settings.get_profile("law")
@given(before=steps, after=steps)
def test_joining_two_busy_components_follows_the_serial_order(before, after, in_sandbox) -> None:
    """From the release on, the old partition only forwards; the new one waits for it."""
    emitted, oracle = joined(before, after, in_sandbox)
    assert by_stream(emitted) == by_stream(oracle.order)


@settings.get_profile("law")
@given(before=steps_and_falls, after=steps_and_falls)
def test_a_postgres_that_forgets_its_last_transactions_changes_nothing(
    before, after, in_sandbox
) -> None:
    """What was sent by then, to the other log and to subscribers, is sent: no task may act
    on what only one of the two worlds knows. Subscribers see no other updates, some again."""
    emitted, oracle = joined(before, after, in_sandbox)
    assert set(emitted) == set(oracle.order)


def joined(before, after, in_sandbox) -> tuple[list, Oracle]:
    """What is emitted, and what the oracle says, of which everything that is stored is."""
    partitions = Partitions(in_sandbox)
    for step in before:
        partitions.take(step)
    partitions.define(JOIN)
    for step in after:
        partitions.take(step)
    partitions.finish()
    state, oracle = partitions.platform.state, serial(partitions)
    names = {number: ref for ref, number in state.streams.items()}

    stored = {
        (names[row.stream_id], row.timestamp): value_of(row.document)
        for _partition, row in state.updates.values()
    }
    lasts = {names[s]: (r.timestamp, value_of(r.document)) for s, r in state.last_updates.items()}
    assert stored == oracle.stored
    assert lasts == oracle.last
    verdicts = Counter({(names[s], v): times for (s, v), (times, _) in state.verdicts.items()})
    assert verdicts == oracle.verdicts
    assert state.dead_letters == []
    emitted = [
        ((each.service_object, each.stream), each.timestamp, value_of(bytes(each.update)))
        for each in state.emitted
    ]
    return emitted, oracle
