"""Changes in the log equal a plain serial interpretation, whatever the batches and crashes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from oracle import Composite, Object, Oracle, Ref
from test_serial_law import SIMPLE, Generous, document, javascript, python, value_of

from pipeline.engine import Engine
from pipeline.evaluators.evaluator import Evaluators
from pipeline.sharing.fairness import Fairness
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.model import Grant, ServiceObjectKey, StreamKey, StreamRef
from servioticy.domain.records import (
    DefinitionRecord,
    DeletionRecord,
    ErasureRecord,
    GrantRecord,
    RevocationRecord,
    UpdateRecord,
)
from servioticy.memory import MemoryPlatform
from servioticy.ports.change_store import NewGrant, NewServiceObject
from servioticy.ports.partition_store import Batch

CONTROL = DefinitionRecord | DeletionRecord | ErasureRecord | GrantRecord | RevocationRecord

MAX_OF_GRANTS = max(1, settings.get_profile("changes").max_examples // 2)

EXTRA = "n"
"""A stream that some versions of an object have and others lack; nobody else reads it."""


@dataclass(frozen=True)
class Shown(Object):
    """An object that may be public."""

    public: bool = False


class Given(NamedTuple):
    """A grant, in the words of the oracle."""

    id: str
    owner: str
    stream: str | None
    tenant: int | None


class Crash(BaseException):
    """The worker is gone."""


class ChangingOracle(Oracle):
    """The serial law with definitions that change, at their place among the updates."""

    def __init__(self) -> None:
        super().__init__([])
        self.declared: list[Object] = []
        self.given: dict[str, Given] = {}
        self.version: dict[str, int] = {}
        self.made_by: dict[tuple[Ref, int], int] = {}
        self.dead = 0
        self.emitted_for_good: set[tuple[Ref, int, int]] = set()

    def take(self, origin: Ref, timestamp: int, value: int) -> None:
        if any(origin[1] in self._names(each) for each in self.objects if each.id == origin[0]):
            super().take(origin, timestamp, value)
        else:
            self.dead += 1

    def _copy(self) -> ChangingOracle:
        other = super()._copy()
        other.made_by = dict(self.made_by)
        return other

    def define(self, thing: Object, version: int) -> None:
        before = self._reading()
        places = [n for n, each in enumerate(self.declared) if each.id == thing.id]
        if places:
            self.declared[places[0]] = thing
        else:
            self.declared.append(thing)
        self.version[thing.id] = version
        self._changed(before, thing.id)

    def grant(self, given: Given) -> None:
        self.given[given.id] = given
        self._changed({}, given.owner)

    def revoke(self, id_: str) -> None:
        before = self._reading()
        given = self.given.pop(id_)
        self._changed(before, given.owner)

    def _changed(self, before: dict[Ref, set[Ref]], id_: str) -> None:
        """Leave out of groups what may not be read; whoever reads less of this is told."""
        after = self._reading()
        alike = {each.id: each for each in self.objects if each.id != id_}
        for owner in self.declared:
            for each in owner.composites if owner.id in alike else ():
                reader = (owner.id, each.name)
                lost = before.get(reader, set()) - after[reader]
                if any(ref[0] == id_ for ref in lost):
                    self.verdicts[reader, "revoked"] += 1
        self.objects = [
            replace(
                each,
                groups={
                    name: tuple(ref for ref in refs if self._may(each.tenant, ref))
                    for name, refs in each.groups.items()
                },
            )
            for each in self.declared
        ]

    def _reading(self) -> dict[Ref, set[Ref]]:
        """What each composite may read of others' objects, by its groups."""
        return {
            (owner.id, each.name): {
                ref
                for name in each.reads
                for ref in owner.groups.get(name, ())
                if self._may(owner.tenant, ref)
            }
            for owner in self.declared
            for each in owner.composites
        }

    def _may(self, tenant: int, ref: Ref) -> bool:
        found = [each for each in self.declared if each.id == ref[0]]
        if not found:
            return True
        return (
            found[0].tenant == tenant
            or getattr(found[0], "public", False)
            or any(
                each.owner == ref[0]
                and each.stream in (None, ref[1])
                and each.tenant in (None, tenant)
                for each in self.given.values()
            )
        )

    def erase(self, ref: Ref) -> None:
        self.last.pop(ref, None)
        for key in [each for each in self.stored if each[0] == ref]:
            self.emitted_for_good.add((ref, key[1], self.stored.pop(key)))
            del self.made_by[key]

    def delete(self, id_: str) -> None:
        self.declared = [each for each in self.declared if each.id != id_]
        self.given = {each.id: each for each in self.given.values() if each.owner != id_}
        self._changed({}, id_)
        for ref in {ref for ref, _ in self.stored if ref[0] == id_}:
            self.erase(ref)
        self.verdicts = Counter({k: n for k, n in self.verdicts.items() if k[0][0] != id_})

    def _store(self, ref: Ref, update: tuple[int, int]) -> None:
        super()._store(ref, update)
        self.made_by[ref, update[0]] = self.version[ref[0]]

    @staticmethod
    def _names(owner: Object) -> list[str]:
        return Oracle._names(owner)


class Faulty:
    """A store whose worker dies before or after some of its transactions."""

    def __init__(self, inner: Any, faults: dict[int, str], calls: list[int]) -> None:
        self._inner, self._faults, self._calls = inner, faults, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def store(self, batch: Batch) -> None:
        self._calls[0] += 1
        fault = self._faults.get(self._calls[0])
        if fault == "before":
            raise Crash
        self._inner.store(batch)
        if fault == "after":
            raise Crash

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


def play(draw: Any, world: World, cycles: bool) -> None:
    """Some objects, then anything in any order, the pipeline at any distance behind."""
    ids = [f"so{n}" for n in range(draw(st.integers(1, 3)))]
    tenants = {each: draw(st.integers(0, 1)) for each in ids}
    alive: list[str] = []

    def drawn(id_: str) -> Any:
        others = others_of(id_)
        return an_object(draw, id_, tenants[id_], others, draw(st.booleans()), cycles)

    def others_of(id_: str) -> list[Ref]:
        known = [each for each in alive if cycles or each < id_]
        return [(each, name) for each in known if each != id_ for name in STREAMS]

    for id_ in ids:
        world.create(*drawn(id_))
        alive.append(id_)
    for _ in range(draw(st.integers(1, 30))):
        step = draw(
            st.sampled_from(
                ["put"] * 8
                + ["replace", "activate", "erase", "work", "crash"]
                + ["grant"] * 2
                + ["revoke"] * 2
                + ["delete", "repeat"]
            )
        )
        id_ = draw(st.sampled_from(alive or ids))
        if step == "put":
            target = draw(st.sampled_from(ids))
            name = draw(st.sampled_from([*SIMPLE, *SIMPLE, "c0", EXTRA]))
            world.put((target, name), draw(st.integers(0, 25)), draw(st.integers(0, 99)))
        elif step == "replace" and alive:
            world.replace(*drawn(id_))
        elif step == "activate" and alive:
            version = draw(st.integers(1, len(world.versions[id_])))
            world.activate(id_, version)
        elif step == "erase" and alive:
            world.erase((id_, draw(st.sampled_from(STREAMS))))
        elif step == "grant" and alive:
            give(draw, world, id_)
        elif step == "revoke":
            take_back(draw, world)
        elif step == "delete" and alive and draw(st.booleans()):
            world.delete(id_)
            alive.remove(id_)
        elif step == "repeat":
            world.repeat(draw(st.integers(0, 99)))
        elif step == "crash":
            world.crash()
        elif step == "work":
            lengths = [len(each) for each in world.platform.state.log]
            world.run([draw(st.integers(0, length)) for length in lengths])
        if step not in ("put", "work"):
            event(step)
    run_all(draw, world)


def run_all(draw: Any, world: World) -> None:
    lengths = [len(each) for each in world.platform.state.log]
    for _ in range(draw(st.integers(0, 2))):
        world.run([draw(st.integers(0, length)) for length in lengths])
    world.run([None] * world.partitions)
    world.run([None] * world.partitions)


def give(draw: Any, world: World, id_: str) -> None:
    """A grant of the object, or of one of its streams, to somebody or everybody."""
    stream = draw(st.sampled_from([None, *STREAMS]))
    tenant = draw(st.sampled_from([None, 0, 1]))
    world.given += 1
    world.grant(Given(f"g{world.given}", id_, stream, tenant), draw(st.booleans()))


def take_back(draw: Any, world: World) -> None:
    if world.oracle.given:
        world.revoke(draw(st.sampled_from(sorted(world.oracle.given))))


def play_grants(draw: Any, world: World) -> None:
    """One tenant's streams, read by another, whose composites are read by a third object."""
    tenants = {"so0": 0, "so1": 1, "so2": draw(st.integers(0, 1))}
    public = dict.fromkeys(tenants, False)

    def drawn(id_: str) -> Any:
        reads = {"so0": ("so0", SIMPLE[0]), "so1": ("so0", "c0"), "so2": ("so1", "c0")}[id_]
        groups = {} if reads[0] == id_ else {"g0": (reads,), "g1": (("so0", SIMPLE[0]),)}
        inputs = {"c0": tuple(groups) or SIMPLE[:1], "c1": ("c0", *list(groups)[:1])}
        numbers = (draw(st.integers(0, 9)), draw(st.integers(3, 9)), draw(st.integers(5, 20)))
        composites = [Composite(name, each, python(*numbers)) for name, each in inputs.items()]
        codes = {(id_, name): javascript(each, *numbers) for name, each in inputs.items()}
        thing = Shown(id_, tuple(SIMPLE), tuple(composites), groups, tenants[id_], public[id_])
        return thing, codes

    for id_ in tenants:
        world.create(*drawn(id_))
    steps = ["put"] * 4 + ["grant", "revoke", "publish"] * 2 + ["work", "crash", "repeat"]
    for step in draw(st.lists(st.sampled_from(steps), min_size=5, max_size=25)):
        id_ = draw(st.sampled_from(["so0", "so0", "so1"]))
        match step:
            case "put":
                name = draw(st.sampled_from([*SIMPLE, "c0"]))
                world.put((id_, name), draw(st.integers(0, 25)), draw(st.integers(0, 99)))
            case "grant":
                give(draw, world, id_)
            case "revoke":
                take_back(draw, world)
            case "publish":
                public[id_] = not public[id_]
                world.replace(*drawn(id_))
            case "repeat":
                world.repeat(draw(st.integers(0, 99)))
            case "crash":
                world.crash()
            case "work":
                lengths = [len(each) for each in world.platform.state.log]
                world.run([draw(st.integers(0, length)) for length in lengths])
    if any(verdict == "revoked" for _, verdict in world.oracle.verdicts):
        event("somebody was told")
    run_all(draw, world)


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


@settings.get_profile("changes")
@given(data=st.data())
@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("cycles", [False, True], ids=["trees", "cycles"])
def test_changes_equal_the_serial_order(data, partitions: int, cycles: bool, in_sandbox) -> None:
    """Definitions, erasures and deletions switch at their place, for every later update."""
    faults = data.draw(
        st.dictionaries(st.integers(1, 40), st.sampled_from(["before", "after"]), max_size=3)
    )
    world = World(partitions, in_sandbox, faults)
    play(data.draw, world, cycles)

    assert_equal_for_readers(world)
    purge(world)
    assert_equal_to_oracle(world)


@settings(settings.get_profile("changes"), max_examples=MAX_OF_GRANTS)
@given(data=st.data())
@pytest.mark.parametrize("partitions", [1, 2])
def test_grants_end_where_the_log_says_so(data, partitions: int, in_sandbox) -> None:
    """What reads by them is woken before, and not after; who loses an input is told once."""
    faults = data.draw(
        st.dictionaries(st.integers(1, 40), st.sampled_from(["before", "after"]), max_size=3)
    )
    world = World(partitions, in_sandbox, faults)
    play_grants(data.draw, world)

    assert_equal_for_readers(world)
    assert_equal_to_oracle(world)
