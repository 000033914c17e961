"""A platform whose definitions change, and the oracle beside it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec
from changing_oracle import CONTROL, EXTRA, ChangingOracle, Crash, Given, Shown
from hypothesis import strategies as st
from memory import MemoryPlatform
from oracle import Composite, Object, Ref
from serial_order import SIMPLE, Generous, document, javascript, python, value_of

from pipeline.engine import Engine
from pipeline.evaluators.evaluator import Evaluators
from pipeline.sharing.fairness import Fairness
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.model import Grant, ServiceObjectKey, StreamKey, StreamRef
from servioticy.domain.records import (
    UpdateRecord,
)
from servioticy.ports.change_store import NewGrant, NewServiceObject
from servioticy.ports.partition_store import Batch


class Faulty:
    """A store whose worker dies before or after some of its transactions."""

    def __init__(self, inner: Any, faults: dict[int, str], calls: list[int]) -> None:
        self._inner, self._faults, self._calls = inner, faults, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def store(self, batch: Batch) -> Any:
        self._calls[0] += 1
        fault = self._faults.get(self._calls[0])
        if fault == "before":
            raise Crash
        replaced = self._inner.store(batch)
        if fault == "after":
            raise Crash
        return replaced

    def purge(self, partition: int, _most: int, most_bytes: int) -> int | None:
        """Removes less at once than it is asked for, so that much is left at any moment."""
        self._calls[1] += 1
        if self._calls[1] % 2:
            return None
        found = self._inner.purge(partition, 1, most_bytes)
        if self._faults.get(self._calls[1]) == "after":
            raise Crash
        return found


@dataclass
class World:
    """The platform on its twins, what is known of its objects, and its workers."""

    partitions: int
    evaluators: Evaluators
    faults: dict[int, str]
    platform: MemoryPlatform = field(init=False)
    oracle: ChangingOracle = field(default_factory=ChangingOracle)
    versions: dict[str, list[tuple[Object, bytes]]] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    calls: list[int] = field(default_factory=lambda: [0, 0])
    crashes: int = 0
    busy: set[int] = field(default_factory=set)
    given: int = 0

    def __post_init__(self) -> None:
        self.platform = MemoryPlatform(self.partitions)
        tokens = [self.platform.tenants.create_tenant(name) for name in ("t", "u")]
        self.tenants = [self.platform.tenants.tenant_of(each) or 0 for each in tokens]
        self.start()

    # What the API does.

    def create(self, thing: Object, codes: dict[Ref, str]) -> None:
        self.platform.changes.create(self._new(thing, codes))
        self.oracle.define(thing, 1)

    def replace(self, thing: Object, codes: dict[Ref, str]) -> None:
        number = self._put_in_force(self._new(thing, codes), None)
        self.oracle.define(thing, number)

    def activate(self, id_: str, version: int) -> None:
        thing, text = self.versions[id_][version - 1]
        self._put_in_force(self._new_from(thing, text), version)
        self.oracle.define(thing, version)

    def _put_in_force(self, new: NewServiceObject, version: int | None) -> int:
        revision = self.platform.graph.nodes([new.id])[new.id].revision
        return self.platform.changes.replace(new, revision, version)

    def delete(self, id_: str) -> None:
        self.platform.changes.delete(self._key(id_), None, 0)
        self.oracle.delete(id_)

    def erase(self, ref: Ref) -> None:
        self.platform.changes.erase(self._key(ref[0]), ref[1])
        self.oracle.erase(ref)

    def grant(self, given: Given, derived_only: bool) -> None:
        grantee = None if given.tenant is None else self.tenants[given.tenant]
        grant = Grant(given.id, grantee, given.stream, derived_only)
        self.platform.changes.grant(NewGrant(self._key(given.owner), grant, 0), 99)
        self.oracle.grant(given)

    def revoke(self, id_: str) -> None:
        owner = self.oracle.given[id_].owner
        self.platform.changes.revoke(self._key(owner).tenant, id_, 0)
        self.oracle.revoke(id_)

    def _key(self, id_: str) -> ServiceObjectKey:
        return ServiceObjectKey(self.tenant_of(id_), id_)

    def tenant_of(self, id_: str) -> int:
        return self.tenants[self.versions[id_][0][0].tenant]

    def put(self, ref: Ref, timestamp: int, value: int) -> None:
        body = {"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp}
        update = msgspec.Raw(json.dumps(body, separators=(",", ":")).encode())
        kept = self.platform.state.service_objects[ref[0]]
        self.platform.log.append(kept.route_partition, UpdateRecord(*ref, timestamp, update))
        self.oracle.take(ref, timestamp, value)

    def repeat(self, number: int) -> None:
        """A control record of the past comes again, as after a crash of the API."""
        told = [
            (partition, record)
            for partition in range(self.partitions)
            for _, record in self.platform.records(partition)
            if isinstance(record, CONTROL)
        ]
        if told:
            self.platform.log.append(*told[number % len(told)])

    def _new(self, thing: Object, codes: dict[Ref, str]) -> NewServiceObject:
        body = document(thing, codes) | {"public": thing.public}
        text = json.dumps(body).encode()
        self.versions.setdefault(thing.id, []).append((thing, text))
        return self._new_from(thing, text)

    def _new_from(self, thing: Object, text: bytes) -> NewServiceObject:
        definition = parse_service_object(json.loads(text), thing.id, argument_names)
        alive = self.platform.graph.nodes(self.versions)
        groups = tuple(
            (group.name, StreamRef(member, group.stream))
            for group in definition.groups
            for member in group.service_objects
            if member in alive
        )
        streams = tuple(stream.ref.stream for stream in definition.streams)
        tenant = self.tenants[thing.tenant]
        public = definition.public
        return NewServiceObject(thing.id, tenant, public, text, streams, groups, 0)

    # What the pipeline does.

    def start(self) -> None:
        self.busy.clear()
        self.tasks = [
            Task(
                number,
                Faulty(self.platform.partition_store(argument_names), self.faults, self.calls),
                lambda number=number: self.platform.output(number),
                Engine(self.evaluators, 1000, 1000, sleep=lambda _seconds: self.step()),
                Fairness(Generous(1.0)),
            )
            for number in range(self.partitions)
        ]

    def step(self) -> None:
        """One partition waits for another: let the others work."""
        for number in set(range(self.partitions)) - self.busy:
            self.work(number, None)

    def work(self, number: int, end: int | None) -> None:
        values = list(self.platform.state.log[number])[:end]
        self.busy.add(number)
        self.tasks[number].take([Row(n, value) for n, value in enumerate(values)])
        self.busy.discard(number)

    def crash(self) -> None:
        """Every worker is gone; what it remembered is, too."""
        self.crashes += 1
        for each in self.tasks:
            each.release()
        self.start()

    def run(self, ends: list[int | None]) -> None:
        """Every partition up to an offset, from the store again after each crash."""
        for number, end in enumerate(ends):
            while True:
                try:
                    self.work(number, end)
                    break
                except Crash:
                    self.crash()


def an_object(
    draw: Any, id_: str, tenant: int, others: list[Ref], extra: bool, cycles: bool
) -> Any:
    """One version of an object: always the same streams but for EXTRA, other code and groups.

    Its groups name what they like: what they may not read of others is left out.
    """
    codes: dict[Ref, str] = {}
    names = ["c0", "c1"] + ([EXTRA] if extra else [])
    groups: dict[str, tuple[Ref, ...]] = {}
    for g in range(draw(st.integers(0, 2)) if others else 0):
        stream = draw(st.sampled_from(sorted({name for _, name in others})))
        owners = sorted({owner for owner, name in others if name == stream})
        members = draw(st.lists(st.sampled_from(owners), min_size=1, max_size=3, unique=True))
        groups[f"g{g}"] = tuple((member, stream) for member in members)
    simple, composites = list(SIMPLE), []
    for k, name in enumerate(names):
        if draw(st.integers(0, 5)) == 0:
            simple.append(name)  # a device sends it, in this version
            continue
        before = [each for each in names[: k + 1] if each not in simple]
        readable = [*simple, *groups, *(names if cycles else before)]
        reads = tuple(
            draw(st.lists(st.sampled_from(readable), min_size=1, max_size=3, unique=True))
        )
        numbers = (draw(st.integers(0, 9)), draw(st.integers(3, 9)), draw(st.integers(5, 20)))
        composites.append(Composite(name, reads, python(*numbers)))
        codes[id_, name] = javascript(reads, *numbers)
    public = draw(st.booleans())
    return Shown(id_, tuple(simple), tuple(composites), groups, tenant, public), codes


STREAMS = (*SIMPLE, "c0", "c1")


def assert_equal_for_readers(world: World) -> None:
    """Though what is deleted or erased may still have rows."""
    history = world.platform.history
    found = {
        (ref, row.timestamp): value_of(row.document)
        for ref, number in world.platform.state.streams.items()
        for row in history.page(StreamKey(world.tenant_of(ref[0]), number), (0, 99), 999, 10**9)
    }
    assert found == world.oracle.stored


def purge(world: World) -> None:
    store = world.platform.partition_store(argument_names)
    for number in range(world.partitions):
        while store.purge(number, 999, 10**9) is not None:
            pass


def assert_equal_to_oracle(world: World) -> None:
    state, oracle = world.platform.state, world.oracle
    names = state.readable()
    rows = [row for _partition, row in state.updates.values()]

    assert {(names[r.stream_id], r.timestamp): value_of(r.document) for r in rows} == oracle.stored
    assert {(names[r.stream_id], r.timestamp): r.version for r in rows} == oracle.made_by
    lasts = {
        names[s]: (row.timestamp, value_of(row.document)) for s, row in state.last_updates.items()
    }
    assert lasts == oracle.last
    verdicts = Counter({(names[s], v): times for (s, v), (times, _) in state.verdicts.items()})
    assert verdicts == oracle.verdicts
    emitted = [
        ((each.service_object, each.stream), each.timestamp, value_of(bytes(each.update)))
        for each in state.emitted
    ]
    letters = {(each.partition, each.offset) for each in state.dead_letters}
    assert len(letters) == oracle.dead
    if world.crashes == 0 and world.partitions == 1:
        assert emitted == oracle.order
    elif world.crashes == 0:
        assert Counter(emitted) == Counter(oracle.order)
    assert set(emitted) == set(oracle.order), "each at least once, whatever was stored over it"
