"""A platform whose definitions change, on its twins."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
from changing_oracle import EXTRA, Crash, Given, Input, Shown
from falling_memory import Memory
from hypothesis import strategies as st
from log_oracle import value_of
from memory import MemoryPlatform
from oracle import Composite, Object, Ref, ScriptError
from plain_trees import Ends
from python_evaluator import PythonEvaluator, Trigger
from serial_order import AT_ONCE, SIMPLE, Generous, document, javascript, python

from pipeline.engine import Engine
from pipeline.limits import NO_LIMITS, Limits
from pipeline.sharing.fairness import Fairness
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.changes import NotGranted
from servioticy.domain.access import granted_of
from servioticy.domain.documents import parse_service_object
from servioticy.domain.evaluators.evaluator import Evaluators
from servioticy.domain.model import Grant, ServiceObjectKey, StreamRef
from servioticy.domain.records import (
    AcquireRecord,
    BeginRecord,
    BorderRecord,
    EndRecord,
    ReleaseRecord,
    UpdateRecord,
)
from servioticy.errors import Unavailable
from servioticy.ports.batches import Batch
from servioticy.ports.change_store import NewGrant, NewServiceObject
from servioticy.ports.effects import Activate

STREAMS = (*SIMPLE, "c0", "c1")
"""What others read."""


class Faulty:
    """A store whose worker dies before or after some of its transactions.

    It notes what is found of inputs from outside where a change comes into force.
    """

    def __init__(self, inner: Any, world: World) -> None:
        self._inner, self._world = inner, world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def store(self, batch: Batch) -> Any:
        world = self._world
        fault = world.fault("store")
        if fault == "before":
            raise Crash
        world.memory.save()
        before = set(world.platform.state.inputs_from_outside)
        replaced = self._inner.store(batch)
        if batch.taken_up:  # such a transaction waits for the disk
            world.memory.is_on_disk()
        if isinstance(batch.effect, Activate):
            world.note_inputs(batch.effect, before)
        if fault == "after":
            raise Crash
        if fault.startswith("forget"):
            world.memory.fall(int(fault[-1]))
            raise Crash
        return replaced

    def not_acknowledged(self, *places: int) -> Any:
        """What is emitted again is on the disk, as nobody could tell that it has been decided."""
        found = self._inner.not_acknowledged(*places)
        if found:
            self._world.memory.is_on_disk()
        return found

    def purge(self, partition: int, _most: int, most_bytes: int) -> int | None:
        """Removes less at once than it is asked for, so that much is left at any moment."""
        self._world.purges += 1
        if self._world.purges % 2:
            return None
        self._world.memory.save()
        return self._inner.purge(partition, 1, most_bytes)  # type: ignore[no-any-return]


class FaultyOutput:
    """An output whose worker dies before or after it has sent something, or whose broker is
    silent for a while."""

    def __init__(self, inner: Any, world: World) -> None:
        self.__dict__.update(_inner=inner, _world=world)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("emit", "poll", "send_to_log", "flush"):
            return found

        def call(*arguments: Any) -> Any:
            fault = self._world.fault(name)
            if fault == "before":
                raise Crash
            if fault == "silent":
                self._world.platform.state.broker_answers = False
            result = found(*arguments)
            if fault == "after":
                raise Crash
            return result

        return call

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)


@dataclass
class World:
    """The platform on its twins, what is known of its objects, and its workers."""

    partitions: int
    evaluators: Evaluators | None = None
    """none: composites are computed by the functions that the oracle has"""
    faults: dict[tuple[str, int], str] = field(default_factory=dict)
    """of which call of the store or of the output: what happens"""
    limits: Limits = NO_LIMITS
    puts_off: bool = False
    """whether records are put off, so trees of several tenants come in another order"""
    most: int = 1000
    """updates of one transaction"""
    fairness: Fairness = field(default_factory=lambda: Fairness(Generous(1.0)))
    platform: MemoryPlatform = field(init=False)
    versions: dict[str, list[tuple[Shown, bytes]]] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    purges: int = 0
    crashes: int = 0
    waits: int = 0
    reached: list[int] = field(default_factory=list)
    busy: set[int] = field(default_factory=set)
    given: dict[str, Given] = field(default_factory=dict)
    in_force: set[str] = field(default_factory=set)
    """grants that the API has not ended"""
    snapshots: dict[tuple[str, int], dict[Ref, Input]] = field(default_factory=dict)
    leaks: list[object] = field(default_factory=list)
    """inputs that were open from the first though nobody said that they may be read"""
    put_there: Counter[tuple[Ref, int, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.platform = MemoryPlatform(self.partitions)
        self.memory = Memory(self.platform.state)
        tokens = [self.platform.tenants.create_tenant(name) for name in ("t", "u", "v")]
        self.tenants = [self.platform.tenants.tenant_of(each) or 0 for each in tokens]
        self.start()

    def fault(self, call: str) -> str:
        """What happens to this call."""
        self.calls[call] += 1
        return self.faults.get((call, self.calls[call]), "")

    def note_inputs(self, change: Activate, before: Collection[object]) -> None:
        """What it has found of others just now; nobody can say it later."""
        rows = self.platform.state.inputs_from_outside
        for key in rows.keys() - before:
            if rows[key].is_open and not self._may_derive(rows[key].tenant, key[1]):
                self.leaks.append(key)
        found = {
            tuple(ref): Input(
                row.is_open,
                last=row.last and (row.last.timestamp, value_of(row.last.document)),
            )
            for (reader, ref), row in rows.items()
            if reader == change.service_object
        }
        self.snapshots.setdefault((change.service_object, change.change), found)
        if found:
            self.memory.is_on_disk()

    def _may_derive(self, tenant: int, ref: StreamRef) -> bool:
        """Whether the API, or the partition of the stream, says so just now."""
        owner = ref.service_object
        nodes = self.platform.graph.nodes([owner])
        found = next(
            iter(self.platform.partition_store(argument_names).service_objects([owner])), None
        )
        return (owner in nodes and nodes[owner].granted.may_derive(tenant, ref.stream)) or (
            found is not None and granted_of(found).may_derive(tenant, ref.stream)
        )

    # What the API does.

    def create(self, thing: Shown, codes: dict[Ref, str]) -> None:
        """Create it, unless something that would move has not arrived: whether it was done."""
        text = self._text(thing, codes)
        with suppress(Unavailable):
            self.platform.changes.create(self._new_from(thing, text))
            self.versions[thing.id] = [(thing, text)]
        self.memory.is_on_disk()

    def replace(self, thing: Shown, codes: dict[Ref, str]) -> None:
        text = self._text(thing, codes)
        with suppress(Unavailable):
            self._put_in_force(self._new_from(thing, text), None)
            self.versions[thing.id].append((thing, text))
        self.memory.is_on_disk()

    def activate(self, id_: str, version: int) -> None:
        thing, text = self.versions[id_][version - 1]
        with suppress(Unavailable):
            self._put_in_force(self._new_from(thing, text), version)
        self.memory.is_on_disk()

    def _put_in_force(self, new: NewServiceObject, version: int | None) -> None:
        revision = self.platform.graph.nodes([new.id])[new.id].revision
        self.platform.changes.replace(new, revision, version)

    def delete(self, id_: str) -> None:
        self.platform.changes.delete(self._key(id_), None, 0)
        self.memory.is_on_disk()

    def move(self, id_: str, partition: int) -> None:
        """Have all that hangs together with it computed there, unless that has to wait."""
        with suppress(Unavailable):
            self.platform.changes.move(self._key(id_), partition)
        self.memory.is_on_disk()

    def erase(self, ref: Ref) -> None:
        self.platform.changes.erase(self._key(ref[0]), ref[1])
        self.memory.is_on_disk()

    def grant(self, given: Given, derived_only: bool) -> None:
        grantee = None if given.tenant is None else self.tenants[given.tenant]
        grant = Grant(given.id, grantee, given.stream, derived_only)
        self.platform.changes.grant(NewGrant(self._key(given.owner), grant, 0), 99)
        self.given[given.id] = given
        self.in_force.add(given.id)
        self.memory.is_on_disk()

    def revoke(self, id_: str) -> None:
        owner = self.given[id_].owner
        with suppress(NotGranted):  # its Service Object may be gone
            self.platform.changes.revoke(self._key(owner).tenant, id_, 0)
        self.in_force.remove(id_)
        self.memory.is_on_disk()

    def readable(self, tenant: int, but: str) -> list[Ref]:
        """What objects of the tenant may read, by the API, of others than this one."""
        nodes = self.platform.graph.nodes(each for each in self.versions if each != but)
        number = self.tenants[tenant]
        return [
            (id_, name)
            for id_, node in nodes.items()
            for name in STREAMS
            if name in node.streams and node.granted.may_derive(number, name)
        ]

    def _key(self, id_: str) -> ServiceObjectKey:
        return ServiceObjectKey(self.tenant_of(id_), id_)

    def tenant_of(self, id_: str) -> int:
        return self.tenants[self.versions[id_][0][0].tenant]

    def put(self, ref: Ref, timestamp: int, value: int) -> None:
        body = {"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp}
        update = msgspec.Raw(json.dumps(body, separators=(",", ":")).encode())
        kept = self.platform.state.service_objects[ref[0]]
        self.platform.log.append(kept.route_partition, UpdateRecord(*ref, timestamp, update))
        self.put_there[ref, timestamp, value] += 1

    def repeat(self, number: int) -> None:
        """A control record of the past comes again, as after a crash of the API."""
        told = [
            (partition, record)
            for partition in range(self.partitions)
            for _, record in self.platform.records(partition)
            if not isinstance(record, UpdateRecord | BorderRecord | BeginRecord | EndRecord)
            and not isinstance(record, ReleaseRecord | AcquireRecord)
        ]
        if told:
            self.platform.log.append(*told[number % len(told)])

    def _text(self, thing: Shown, codes: dict[Ref, str]) -> bytes:
        return json.dumps(document(thing, codes) | {"public": thing.public}).encode()

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

    @staticmethod
    def codes_of(text: bytes) -> dict[str, str]:
        """The codes of the composites of a document."""
        codes = {
            name: stream["channels"]["v"].get("current-value")
            for name, stream in json.loads(text)["streams"].items()
        }
        return {name: code for name, code in codes.items() if code is not None}

    # What the pipeline does.

    def start(self) -> None:
        self.busy.clear()
        self.waits = 0
        self.platform.state.broker_answers = True
        self.tasks = [
            Task(
                number,
                Faulty(self.platform.partition_store(argument_names), self),
                lambda number=number: FaultyOutput(self.platform.output(number), self),
                Engine(
                    self.evaluators or {"javascript": PythonEvaluator(self._compute)},
                    self.most,
                    10**6,
                    self.limits,
                    sleep=lambda _seconds: self.step(),
                    idle_seconds=AT_ONCE,
                ),
                self.fairness,
            )
            for number in range(self.partitions)
        ]

    def _compute(self, trigger: Trigger, documents: list[bytes | None]) -> int | None:
        """What a composite makes of what it reads; its own last output may follow."""
        ref, _, version = trigger.name.rpartition("@")
        id_, _, name = ref.partition("/")
        thing, _text = self.versions[id_][int(version) - 1]
        (composite,) = [each for each in thing.composites if each.name == name]
        read = documents[: len(composite.reads)]
        try:
            return composite.compute([None if each is None else value_of(each) for each in read])
        except ScriptError as error:
            raise Ends("script-error", str(error)) from error

    def step(self) -> None:
        """One partition waits for another, or for the broker: let the others work.

        Where all wait, the one that may go on is not the last that began to: begin anew.
        """
        self.platform.state.broker_answers = True
        reached = [each.next_offset for each in self.platform.state.progress.values()]
        self.waits = 0 if reached != self.reached else self.waits + 1
        self.reached = reached
        if self.waits > 2:
            raise Crash
        for number in set(range(self.partitions)) - self.busy:
            self.work(number, None)

    def work(self, number: int, end: int | None) -> None:
        values = list(self.platform.state.log[number])[:end]
        self.busy.add(number)
        self.tasks[number].take([Row(n, value) for n, value in enumerate(values)])
        self.busy.discard(number)

    def finish(self) -> None:
        """Work until nothing is left to do, and nothing new comes of it."""
        for _ in range(1000):
            lengths = self.lengths()
            self.run([None] * self.partitions)
            self.rest()
            if lengths == self.lengths() and self._is_done():
                return
        raise AssertionError("it does not end")

    def rest(self) -> None:
        """Nothing has come for a while."""
        for number in range(self.partitions):
            try:
                self.tasks[number].rest()
            except Crash:
                self.crash()
            self.platform.state.broker_answers = True

    def lengths(self) -> list[int]:
        return [len(each) for each in self.platform.state.log]

    def _is_done(self) -> bool:
        state = self.platform.state
        rows = [state.progress[each] for each in range(self.partitions)]
        waiting = [
            e for key, e in state.put_off.items() if key not in state.taken_up and not e.held
        ]
        ends = [(each.next_offset, each.emitted_offset) for each in rows]
        return ends == [(end, end) for end in self.lengths()] and not waiting

    def crash(self) -> None:
        """Every worker is gone; what it remembered is, too."""
        self.crashes += 1
        self.platform.state.broker_answers = True
        for each in self.tasks:
            each.release()
        self.start()

    def run(self, ends: list[int | None]) -> None:
        """Every partition up to an offset, from the store again after each crash."""
        for number, end in enumerate(ends):
            while True:
                try:
                    self.work(number, end)
                    self.platform.state.broker_answers = True
                    break
                except Crash:
                    self.crash()


def an_object(
    draw: Any, id_: str, tenant: int, others: list[Ref], extra: bool, cycles: bool
) -> Any:
    """One version of an object: always the same streams but for EXTRA, other code and groups."""
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
        readable = [*groups, *simple, *(names if cycles else before)]
        reads = tuple(
            draw(st.lists(st.sampled_from(readable), min_size=1, max_size=3, unique=True))
        )
        numbers = (draw(st.integers(0, 9)), draw(st.integers(3, 9)), draw(st.integers(5, 20)))
        options = [draw(st.integers(0, 4)) == 0 for _ in range(3)]
        composites.append(Composite(name, reads, python(*numbers), *options))
        codes[id_, name] = javascript(reads, *numbers)
    public = draw(st.booleans())
    return Shown(id_, tuple(simple), tuple(composites), groups, tenant, public), codes
