"""Tenants that read each other's streams, over partitions whose tasks take turns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import msgspec
from falling_postgres import Postgres
from memory import MemoryPlatform
from new_service_objects import new_service_object
from oracle import Composite, Object
from python_evaluator import Compute, PythonEvaluator
from serial_order import AT_ONCE, Generous, document

from pipeline.engine import Engine
from pipeline.limits import NO_LIMITS
from pipeline.sharing.fairness import Fairness
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.model import Grant, ServiceObjectKey, StreamRef
from servioticy.domain.records import LogRecord, UpdateRecord
from servioticy.ports.batches import Batch
from servioticy.ports.change_store import NewGrant


class Crash(BaseException):
    """The worker dies here."""


class Neighbours:
    """A platform on its twins; composites have the timestamps of their triggers as values."""

    def __init__(
        self,
        partitions: int = 2,
        most: int = 1000,
        limits: Any = NO_LIMITS,
        compute: Compute = lambda trigger, _values: trigger.timestamp,
    ) -> None:
        """`most` updates are computed in a batch; values may be others."""
        self.platform = MemoryPlatform(partitions)
        self.postgres = Postgres(self.platform)
        self.compute = compute
        self.state = self.platform.state
        self.most, self.limits = most, limits
        self.shares: Any = Generous(1.0)
        self.tenants: dict[str, int] = {}
        self.batches: list[Batch] = []
        self.dies_at: dict[int, str] = {}
        """The number of a transaction, and whether it is stored."""
        self.ends: dict[int, int] = {}
        """How far a partition may read its log; others read all."""
        self._numbers = 0
        self._busy: set[int] = set()
        self.start()

    def start(self) -> None:
        """All workers begin anew."""
        self.state.claims.clear()
        self._busy.clear()
        self.tasks = [self._task(number) for number in range(len(self.state.log))]

    def _task(self, number: int) -> Task:
        store = self.postgres.store(self.platform.partition_store(argument_names))
        inner = store.store

        def stored(batch: Batch) -> Mapping[int, int]:
            self._numbers += 1
            death = self.dies_at.pop(self._numbers, "")
            if death == "before":
                raise Crash
            replaced = inner(batch)
            self.batches.append(batch)
            if death == "after":
                raise Crash
            return replaced

        store.store = stored  # type: ignore[method-assign]
        engine = Engine(
            {"javascript": PythonEvaluator(self.compute)},
            self.most,
            10**6,
            self.limits,
            sleep=lambda _seconds: self.step(number),
            idle_seconds=AT_ONCE,
        )
        return Task(
            number, store, lambda: self.platform.output(number), engine, Fairness(self.shares)
        )

    # What the API does.

    def tenant(self, name: str) -> int:
        """The tenant of this name."""
        if name not in self.tenants:
            token = self.platform.tenants.create_tenant(name)
            self.tenants[name] = self.platform.tenants.tenant_of(token) or 0
        return self.tenants[name]

    def define(
        self,
        tenant: str,
        id_: str,
        *simple: str,
        public: bool = True,
        **composites: tuple[str, ...],
    ) -> None:
        """Create a Service Object, or put another document in force.

        Composites read streams of their own by name, and others' as `owner/stream`.
        """
        new = new_service_object(
            self.tenant(tenant), id_, _document(id_, simple, composites, public=public)
        )
        alive = {tuple(ref) for ref in self.state.streams}
        groups = tuple(each for each in new.group_sources if tuple(each[1]) in alive)
        new = replace(new, group_sources=groups)
        if id_ in self.state.service_objects:
            revision = self.platform.graph.nodes([id_])[id_].revision
            self.platform.changes.replace(new, revision)
        else:
            self.platform.changes.create(new)

    def delete(self, id_: str) -> None:
        self.platform.changes.delete(self._key(id_), None, 1)

    def erase(self, id_: str, stream: str) -> None:
        self.platform.changes.erase(self._key(id_), stream)

    def grant(self, id_: str, owner: str, grantee: str | None, stream: str | None = None) -> None:
        """Let a tenant derive from what another one owns."""
        to = None if grantee is None else self.tenant(grantee)
        new = NewGrant(self._key(owner), Grant(id_, to, stream, derived_only=True), 0)
        self.platform.changes.grant(new, 99)

    def revoke(self, id_: str) -> None:
        self.platform.changes.revoke(self.state.grants[id_].tenant, id_, 1)

    def _key(self, id_: str) -> ServiceObjectKey:
        return ServiceObjectKey(self.state.service_objects[id_].tenant, id_)

    def put(self, ref: str, at: int) -> None:
        """A device sends an update of `owner/stream`, whose value is its timestamp."""
        owner, stream = ref.split("/")
        body = {"channels": {"v": {"current-value": at}}, "lastUpdate": at}
        update = msgspec.Raw(json.dumps(body, separators=(",", ":")).encode())
        self.append(self.partition_of(owner), UpdateRecord(owner, stream, at, update))

    def append(self, partition: int, record: LogRecord) -> None:
        self.platform.log.append(partition, record)

    # What the pipeline does.

    def take(self, number: int) -> None:
        """Let one task take what is new in its log."""
        self._busy.add(number)
        try:
            log = list(self.state.log[number])[: self.ends.get(number)]
            progress = self.state.progress.get(number)
            first = progress.next_offset if progress else 0
            self.tasks[number].take([Row(at, log[at]) for at in range(first, len(log))])
        finally:
            self._busy.discard(number)

    def step(self, waiting: int) -> None:
        """A task waits for another: let the others work."""
        for number in range(len(self.tasks)):
            if number != waiting and number not in self._busy:
                self.take(number)

    def run(self) -> None:
        """Let all take all there is, and what they send each other; who has died begins anew."""
        begins = True
        while begins or any(self._has_more(number) for number in range(len(self.tasks))):
            try:
                for number in range(len(self.tasks)):
                    if begins or self._has_more(number):
                        self.take(number)
                begins = False
            except Crash:
                self.start()
                begins = True

    def _has_more(self, number: int) -> bool:
        progress = self.state.progress.get(number)
        waits = {key for key, each in self.state.put_off.items() if not each.held}
        waiting = any(at == number for at, _key in waits - self.state.taken_up)
        return waiting or (progress.next_offset if progress else 0) < len(self.state.log[number])

    def fall(self, forgotten: int) -> None:
        """Postgres forgets its last transactions; what was sent by then stays sent."""
        self.postgres.fall(forgotten)
        self.start()

    @contextmanager
    def dying(self, number: int, death: str) -> Iterator[None]:
        """The n-th transaction from now on ends a worker; `before` it is stored, or `after`."""
        self.dies_at = {self._numbers + number: death}
        yield
        self.dies_at.clear()

    # What there is then.

    def partition_of(self, id_: str) -> int:
        """Where updates of a Service Object go now."""
        return self.state.service_objects[id_].route_partition

    def got(self, ref: str) -> list[int]:
        """The timestamps of a stream that subscribers got, in order."""
        return [
            each.timestamp
            for each in self.state.emitted
            if f"{each.service_object}/{each.stream}" == ref
        ]

    def stored(self, ref: str) -> list[int]:
        """Those in the history."""
        number = self.state.streams[tuple(ref.split("/"))]  # type: ignore[index]
        number = self.state.stored_as(number)
        return sorted(at for stream, at in self.state.updates if stream == number)

    def verdicts(self, ref: str) -> dict[str, int]:
        """How computations of a composite ended."""
        number = self.state.streams[tuple(ref.split("/"))]  # type: ignore[index]
        found = self.state.verdicts.items()
        return {kind: times for (each, kind), (times, _last) in found if each == number}

    def told(self, ref: str, verdict: str) -> dict[str, Any]:
        """The last that is told of a verdict."""
        number = self.state.streams[tuple(ref.split("/"))]  # type: ignore[index]
        found: dict[str, Any] = json.loads(self.state.verdicts[number, verdict][1])
        return found

    def known(self, reader: str, ref: str) -> int | None:
        """The last timestamp that a reader knows of what it reads from outside."""
        row = self.state.inputs_from_outside[reader, StreamRef(*ref.split("/"))]
        return None if row.last is None else row.last.timestamp


def _document(
    id_: str, simple: tuple[str, ...], composites: Mapping[str, tuple[str, ...]], *, public: bool
) -> Any:
    groups: dict[str, tuple[tuple[str, str], ...]] = {}
    reads: dict[str, tuple[str, ...]] = {}
    for name, read in composites.items():
        named = []
        for each in read:
            owner, _, stream = each.rpartition("/")
            group = f"{owner}_{stream}" if owner else stream
            if owner:
                groups[group] = ((owner, stream),)
            named.append(group)
        reads[name] = tuple(named)
    codes = {
        (id_, name): f"function({','.join(read)}){{return 1}}" for name, read in reads.items()
    }
    made = tuple(Composite(name, read, None) for name, read in reads.items())
    return document(Object(id_, simple, made, groups), codes) | {"public": public}
