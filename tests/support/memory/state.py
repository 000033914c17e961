"""What the twins share: the tables of Postgres and the topics of Kafka, as plain values."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from servioticy.domain.model import Grant, LastUpdate, StreamRef, Timestamp
from servioticy.domain.records import DeadLetter, EmittedRecord
from servioticy.domain.retention import kept_from
from servioticy.errors import Unavailable
from servioticy.ports.batches import StoredUpdate
from servioticy.ports.borders import Crossing, OutsideReader
from servioticy.ports.change_store import Change
from servioticy.ports.kept_entries import KeptValue
from servioticy.ports.put_off import PutOff, TreeKey

GONE = 2**63 - 1
"""As `active_change`: deleted, and never to be in force again."""


@dataclass(slots=True)
class ServiceObjectRow:
    """A row of `service_objects`."""

    id: str
    tenant: int
    sequence: int
    public: bool
    version: int
    component: str
    route_partition: int
    owner_partition: int
    newest_version: int = 1
    revision: int = 1
    active_version: int | None = None
    active_change: int = 0
    deleted_at: int | None = None
    """when the API deleted it; the row stays, so that no id is used twice"""


@dataclass(slots=True)
class GrantRow:
    """A row of `grants`."""

    grant: Grant
    tenant: int
    service_object: str
    expires_at: int | None = None
    revoked_at: int | None = None
    active: bool = False


class Edge(NamedTuple):
    """A row of `graph_edges`: a group of the reader names the source."""

    reader: str
    group: str
    source: StreamRef


@dataclass(slots=True)
class ProgressRow:
    """A row of `progress`."""

    next_offset: int = 0
    next_tree: int = 0
    emitted_offset: int = 0


def now() -> int:
    """Return the time by the store's clock, in ms."""
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class InputRow:
    """A row of `inputs_from_outside`; places are partition and offset in a provider's log."""

    tenant: int
    provider: int
    kept: bool
    is_open: bool = True
    fed_in: int | None = None
    """the partition in which what comes feeds the reader"""
    left_in: int | None = None
    """the partition that sends on what still comes there"""
    told: tuple[int, int] | None = None
    """where the last Begin or End was made that has been heeded"""
    left_told: tuple[int, int] | None = None
    """the same of what is sent on, while something is"""
    awaits: tuple[int, int] | None = None
    """where the move was made of which the rest is still to come"""
    arrived: tuple[int, int] | None = None
    """the last such place of which the rest has come"""
    last: LastUpdate | None = None
    named_by: int = 0
    """the number of the change by which it was named"""
    since: int = field(default_factory=now)
    """when it was first fed with what it may read, or ended, or until that was named; in ms"""


@dataclass(slots=True)
class Purge:
    """A row of `purge`: a deleted Service Object, or the number of a stream's updates."""

    partition: int
    tenant: int
    service_object: str | None = None
    stored_as: int | None = None


@dataclass(slots=True)
class Backfill:
    """A row of `backfills` whose job is to take its place, and those of `backfilled`."""

    computed: frozenset[int]
    since: int
    until: int
    rows: list[tuple[int, StoredUpdate]]
    """partition and row"""
    before: dict[int, int]
    """by partition how far the log was stored before history was read"""

    def take_its_place(
        self,
        updates: dict[tuple[int, int], tuple[int, StoredUpdate]],
        taken_back: dict[int, StoredUpdate],
    ) -> None:
        """Replace what was computed before; what was sent, or computed since, stays."""
        for stream, row in list(taken_back.items()):
            if stream in self.computed and self.since <= row.timestamp < self.until:
                del taken_back[stream]
        for key, (partition, row) in list(updates.items()):
            in_span = self.since <= row.timestamp < self.until
            is_old = row.offset < self.before.get(partition, 0)
            if row.stream_id in self.computed and in_span and row.position and is_old:
                del updates[key]
        for partition, row in self.rows:
            updates.setdefault((row.stream_id, row.timestamp), (partition, row))


@dataclass(slots=True)
class State:
    """Everything; whoever reads or changes more than one of them holds `lock`.

    `postgres_answers` and `broker_answers` are for tests of what happens when they do not.
    """

    log: list[list[bytes]]
    lock: threading.RLock = field(default_factory=threading.RLock)
    changes: threading.RLock = field(default_factory=threading.RLock)
    """the right to change the stream graph"""
    change_wait_seconds: float = 10.0
    postgres_answers: bool = True
    broker_answers: bool = True

    tenants: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    service_objects: dict[str, ServiceObjectRow] = field(default_factory=dict)
    definitions: dict[tuple[str, int], bytes] = field(default_factory=dict)
    operator_owners: dict[tuple[str, int], Mapping[str, int]] = field(default_factory=dict)
    """Whom versions mean by the names of others whose programs they name."""
    kept_entries: dict[tuple[int, bytes], KeptValue] = field(default_factory=dict)
    """(number of the stream's updates, key)"""
    streams: dict[tuple[str, str], int] = field(default_factory=dict)
    """(Service Object, stream name): stream id"""
    last_stream: int = 0
    kept_seconds: dict[tuple[str, str], int | None] = field(default_factory=dict)
    """of a stream, how long its updates are kept, if its document says so"""
    retention: int | None = None
    """seconds for which updates are kept of the others; None: for ever"""
    undeclared: set[tuple[str, str]] = field(default_factory=set)
    """streams that the version in force for the API does not have"""
    erased_by: dict[int, int] = field(default_factory=dict)
    """stream id: number of the last change that erased it"""
    after_erasure: dict[int, int] = field(default_factory=dict)
    """stream id: the number its updates are stored under since it was erased"""
    purge: list[Purge] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    grants: dict[str, GrantRow] = field(default_factory=dict)
    pending: dict[int, Change] = field(default_factory=dict)
    last_pending: int = 0
    named_by: dict[str, int] = field(default_factory=dict)
    """Which change named the version of each Service Object last."""

    updates: dict[tuple[int, int], tuple[int, StoredUpdate]] = field(default_factory=dict)
    """(stream id, timestamp): partition and row"""
    backfills: dict[str, Backfill] = field(default_factory=dict)
    """by job"""
    superseded: list[tuple[int, StoredUpdate]] = field(default_factory=list)
    """partition and row that a later one of its batch displaced"""
    states: dict[int, bytes] = field(default_factory=dict)
    """stream id: what it keeps from one computation to the next"""
    taken_back: dict[int, StoredUpdate] = field(default_factory=dict)
    """stream id: its last result that was taken back, where none was newer then"""
    verdicts: dict[tuple[int, str], tuple[int, bytes]] = field(default_factory=dict)
    processor_us: Counter[int] = field(default_factory=Counter)
    """stream id: what its code has used"""
    accounts: dict[tuple[int, str, str, int], Counter[str]] = field(default_factory=dict)
    """tenant, Service Object, stream, provider: what was used"""
    claims: dict[int, object] = field(default_factory=dict)
    """partition: the store that has claimed it"""
    progress: dict[int, ProgressRow] = field(default_factory=dict)
    forwarded: dict[tuple[int, int], int] = field(default_factory=dict)
    """(to partition, from partition): next offset"""

    put_off: dict[tuple[int, TreeKey], PutOff] = field(default_factory=dict)
    """(partition, which tree): record that is computed later"""
    taken_up: set[tuple[int, TreeKey]] = field(default_factory=set)
    """those of them that are computed, and perhaps not all emitted"""

    inputs_from_outside: dict[tuple[str, StreamRef], InputRow] = field(default_factory=dict)
    """by reader and what it reads of another tenant"""
    outside_readers: dict[tuple[str, StreamRef], OutsideReader] = field(default_factory=dict)
    """the same as the partition of the stream knows it"""
    marks: dict[tuple[int, int, StreamRef], tuple[int, int]] = field(default_factory=dict)
    """(to partition, from partition, stream): offset and part of the last one taken in"""
    crossings: dict[tuple[int, TreeKey, int], Crossing] = field(default_factory=dict)
    """(partition, which tree, number): what is not certain to be where it was sent"""

    emitted_to: list[tuple[int, EmittedRecord]] = field(default_factory=list)
    """partition and update, in order"""
    dead_letters: list[DeadLetter] = field(default_factory=list)

    @property
    def emitted(self) -> list[EmittedRecord]:
        """All that was emitted, in order, without its places: those are for the pipeline."""
        return [msgspec.structs.replace(each, place=None) for _, each in self.emitted_to]

    @property
    def last_updates(self) -> dict[int, StoredUpdate]:
        """Of each stream that has any the update of the largest timestamp."""
        last: dict[int, StoredUpdate] = {}
        for (stream, timestamp), (_partition, row) in self.updates.items():
            if stream not in last or timestamp > last[stream].timestamp:
                last[stream] = row
        return last

    @property
    def computed_from(self) -> dict[int, StoredUpdate]:
        """The same as it is computed from: where one that was taken back is newer, that."""
        last = self.last_updates
        for stream, each in self.taken_back.items():
            if stream not in last or each.timestamp > last[stream].timestamp:
                last[stream] = each
        return last

    def stored_as(self, stream_id: int) -> int:
        """The number under which the stream's updates are stored."""
        return self.after_erasure.get(stream_id, stream_id)

    def kept_from(self, number: int) -> Timestamp:
        """The timestamp at which a history begins, by the number of the stream's updates."""
        own = next(
            (ref for ref, id_ in self.streams.items() if self.stored_as(id_) == number), None
        )
        seconds = None if own is None else self.kept_seconds.get(own)
        newest = max((at for stream, at in self.updates if stream == number), default=None)
        return kept_from(newest, self.retention if seconds is None else seconds, time.time())

    def readable(self) -> dict[int, tuple[str, str]]:
        """The streams that are not deleted, by the number of their updates."""
        return {
            self.stored_as(number): ref
            for ref, number in self.streams.items()
            if self.service_objects[ref[0]].active_change < GONE
        }

    def service_object(self, id_: str) -> ServiceObjectRow | None:
        """The Service Object, unless it does not exist, or not any more."""
        row = self.service_objects.get(id_)
        return None if row is None or row.deleted_at is not None else row

    def ask_postgres(self) -> None:
        """Raises Unavailable where Postgres is said not to answer."""
        if not self.postgres_answers:
            raise Unavailable("Postgres does not answer: it is switched off")

    def ask_broker(self) -> None:
        """Raises Unavailable where the broker is said not to answer."""
        if not self.broker_answers:
            raise Unavailable("the broker does not answer: it is switched off")
