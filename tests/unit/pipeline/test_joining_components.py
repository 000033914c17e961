"""Two busy components are joined by a composite over both: nothing wrong, nothing missing.

Two partitions, each with its task, and devices whose updates may still go to the partition
of before. Where the log is read in which portions is up to chance.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Composite, Object, Oracle
from test_serial_law import Examples, define, javascript, python, value_of

from pipeline.task import Row, Task
from sandbox import argument_names
from servioticy.memory import MemoryPlatform
from servioticy.messaging.records import AcquireRecord, ReleaseRecord, UpdateRecord

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
steps = st.lists(puts | runs, max_size=30)


class Partitions:
    """A platform of two partitions with a component in each, and the two tasks."""

    def __init__(self, sandbox: Examples) -> None:
        sandbox.example += 1
        self.platform = MemoryPlatform(2)
        self.tenant = self.platform.catalog.tenant_of(self.platform.catalog.create_tenant("t"))
        self.define(LEFT)
        self.define(RIGHT)
        self.routes = self.current_routes()
        assert sorted(self.routes.values()) == [0, 1]
        self.tasks = [
            Task(
                number,
                self.platform.partition_store(argument_names),
                sandbox,
                lambda number=number: self.platform.output(number),
                1000,
                1000,
                sleep=lambda _seconds, other=1 - number: self.run(other),
            )
            for number in range(2)
        ]
        self.read = [0, 0]

    def define(self, thing: Object) -> None:
        define(thing, CODES, self.tenant, self.platform)

    def current_routes(self) -> dict[str, int]:
        kept = self.platform.state.service_objects
        return {id_: kept[id_].route_partition for id_ in (LEFT.id, RIGHT.id)}

    def take(self, step) -> None:
        if step[0] == "run":
            self.run(*step[1:])
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
    updates = [r for r in logs[1 - old][acquire:] if isinstance(r, UpdateRecord)]
    assert [r.forwarded for r in updates if r.forwarded is not None] == [(old, n) for n in late]
    apart = [*logs[old][:release], *logs[1 - old][:acquire]]
    for records, objects in ((apart, [LEFT, RIGHT]), (logs[1 - old][acquire:], OBJECTS)):
        oracle.objects = list(objects)
        for each in records:
            if isinstance(each, UpdateRecord):
                value = value_of(bytes(each.update))
                oracle.take((each.service_object, each.stream), each.timestamp, value)
    return oracle


@pytest.fixture(scope="module")
def sandbox():
    examples = Examples()
    yield examples
    examples.pool.close()


def by_stream(updates) -> dict:
    found = defaultdict(list)
    for ref, timestamp, value in updates:
        found[ref].append((timestamp, value))
    return found


@settings.get_profile("law")
@given(before=steps, after=steps)
def test_joining_two_busy_components_follows_the_serial_order(before, after, sandbox) -> None:
    """From the release on, the old partition only forwards; the new one waits for it."""
    partitions = Partitions(sandbox)
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
    emitted = [
        ((each.service_object, each.stream), each.timestamp, value_of(bytes(each.update)))
        for each in state.emitted
    ]
    assert stored == oracle.stored
    assert lasts == oracle.last
    assert by_stream(emitted) == by_stream(oracle.order)
    verdicts = Counter({(names[s], v): times for (s, v), (times, _) in state.verdicts.items()})
    assert verdicts == oracle.verdicts
    assert state.dead_letters == []
