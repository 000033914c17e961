"""The ports side by side, and what stands in them, for the suites of this folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from confluent_kafka import Consumer, Message, TopicPartition

from servioticy.domain.model import ServiceObjectKey, StreamKey, StreamRef
from servioticy.domain.persons import Person
from servioticy.domain.records import (
    DeadLetter,
    EmittedRecord,
    LogRecord,
    UpdateRecord,
)
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.change_store import Change, ChangeStore, NewServiceObject
from servioticy.ports.cursors import Source, StoredCursor, write_cursor
from servioticy.ports.history import History, VersionedUpdate
from servioticy.ports.log import SharedLog
from servioticy.ports.output import Output
from servioticy.ports.partition_store import PartitionStore
from servioticy.ports.stream_graph import GraphNode, StreamGraph
from servioticy.ports.tenants import Tenants
from servioticy.storage.addresses import PostgresAddresses
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.database import Database, Row
from servioticy.storage.history import PostgresHistory
from servioticy.storage.service_objects import PostgresServiceObjects
from servioticy.storage.statements import PostgresStatements
from servioticy.storage.stream_graph import PostgresStreamGraph
from servioticy.storage.tenants import PostgresTenants

PARTITIONS = 2

TAKEN_BACK = "states WHERE taken_back_at IS NOT NULL"
"""As a table: what is computed from though it was taken back, or was."""


@dataclass
class Storage:
    """The ports that have a twin, over one database."""

    tenants: Tenants
    graph: StreamGraph
    change_store: ChangeStore
    history: History
    store: PartitionStore
    other_store: PartitionStore
    """another worker's"""
    stream_id: Callable[[str, str], int]
    """the number of a stream, by Service Object and name"""
    rows: Callable[[str], int]
    """how many rows a table has, those too that nobody can read"""

    def tenant(self, name: str = "acme") -> int:
        """A tenant's id."""
        tenant = self.tenants.tenant_of(self.tenants.create_tenant(name))
        assert tenant is not None
        return tenant

    def create(
        self, tenant: int, id_: str, groups: tuple[tuple[str, StreamRef], ...] = ()
    ) -> Change:
        """Store a Service Object with the streams `a` and `b`."""
        return self.change_store.create(a_service_object(tenant, id_, groups), PARTITIONS)

    def stored_as(self, id_: str, stream: str = "a") -> int:
        """The number under which the pipeline stores updates of a stream now."""
        (found,) = self.store.service_objects([id_])
        return found.stream_ids[stream]

    def purge(self, partition: int = 0) -> None:
        """Remove all that is deleted or erased."""
        while self.store.purge(partition, 1000, 10**6) is not None:
            pass

    def node(self, id_: str) -> GraphNode:
        """The Service Object in the graph."""
        return self.graph.nodes([id_])[id_]


class Stored:
    """The ports that only Postgres is behind, over one database, and two tenants."""

    def __init__(self, owner: Database, database: Database, pipeline: Database) -> None:
        """The owner sees all; the others are what the API and the pipeline are to Postgres."""
        self.database = owner
        self.pipeline = pipeline
        self.tenants = PostgresTenants(database)
        self.addresses = PostgresAddresses(database)
        self.service_objects = PostgresServiceObjects(database)
        self.graph = PostgresStreamGraph(database)
        self.change_store = PostgresChangeStore(database)
        self.subscriptions = PostgresStatements(database, "subscriptions")
        self.members = PostgresStatements(database, "members")
        self.history = PostgresHistory(database)
        self.token, self.other_token = map(self.tenants.create_tenant, ("acme", "umbrella"))
        self.tenant, self.other = (
            self.tenants.tenant_of(each) or 0 for each in (self.token, self.other_token)
        )

    def create(self, id_: str, **more: Any) -> ServiceObjectKey:
        """Store a Service Object of the tenant with the streams `a` and `b`."""
        self.change_store.create(a_service_object(self.tenant, id_, **more), PARTITIONS)
        return ServiceObjectKey(self.tenant, id_)

    def add_member(self, id_: str, person: Person, role: str, tenant: int | None = None) -> None:
        """Make somebody a member; of the tenant if no other is named."""
        issuer, subject = person
        names = {"issuer": issuer, "subject": subject, "name": "", "email": ""}
        values = {"id": id_, "tenant": tenant or self.tenant, "person": person.digest}
        assert self.members.rows("add", role=role, **values, **names)

    def subscribe(
        self,
        id_: str,
        stream: StreamKey | Source,
        destination: str = "x",
        callback: str = "pubsub",
        now: int = 1000,
        tenant: int | None = None,
        cursor: StoredCursor | None = None,
    ) -> bool:
        """Store a subscription, durable if it has a cursor; of the tenant if no other is named."""
        to_many = isinstance(stream, Source)
        found = self.subscriptions.rows(
            "subscribe",
            id=id_,
            tenant=tenant or self.tenant,
            stream=None if to_many else stream.stream_id,
            service_object=stream.service_object if to_many else None,
            group=stream.group if to_many else None,
            callback=callback,
            destination=destination,
            document=f'{{"id":"{id_}"}}',
            now=now,
            most=1000,
            cursor=None if cursor is None else write_cursor(cursor),
            expires_at=None,
        )
        return found == [(False, True)]

    def subscriptions_to(self, stream: StreamKey, only: int | None = None) -> list[Row]:
        """Those to a stream that are stored, of one tenant or of all: their columns."""
        first = {"created_at": -1, "id": "", "only": only, "rows": 1000}
        rows = self.subscriptions.rows("of_stream", **stream._asdict(), **first)
        return [row[2:] for row in rows]

    def stream(self, id_: str, name: str = "a") -> StreamKey:
        """The stream in the store."""
        return StreamKey(self.tenant, stream_id(self.database, id_, name))


def stream_id(database: Database, id_: str, name: str) -> int:
    """The number of a stream."""
    sql = "SELECT id FROM streams WHERE service_object = %(id)s AND name = %(name)s"
    found = database.row(sql, {"id": id_, "name": name})
    assert found is not None
    number: int = found[0]
    return number


@dataclass
class Messaging:
    """The ports that share one broker, and what a reader finds in its topics."""

    log: SharedLog
    output: Callable[[int], Output]
    records: Callable[[int], list[LogRecord]]
    emitted: Callable[[], list[EmittedRecord]]
    dead_letters: Callable[[], list[DeadLetter]]
    another_log: Callable[[], SharedLog]
    """as another process has it"""


def values(servers: str, topic: str, partition: int) -> list[bytes]:
    """The values of all that stands in a partition of a topic now."""
    return [message.value() or b"" for message in messages(servers, topic, partition)]


def messages(servers: str, topic: str, partition: int) -> list[Message]:
    """All that stands in a partition of a topic now."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "test"})
    try:
        _low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 10)
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[Message] = []
        while len(found) < high:
            message = consumer.poll(10)
            assert message is not None and message.error() is None
            found.append(message)
        return found
    finally:
        consumer.close()


def a_service_object(
    tenant: int,
    id_: str,
    groups: tuple[tuple[str, StreamRef], ...] = (),
    public: bool = False,
    document: bytes = b'{"streams":{"b":{"channels":{}},"a":{"channels":{}}}}',
) -> NewServiceObject:
    return NewServiceObject(id_, tenant, public, document, ("b", "a"), groups, 1000)


def an_update(value: int = 1) -> UpdateRecord:
    text = b'{"channels":{"x":{"current-value":%d}},"lastUpdate":%d}' % (value, value)
    return UpdateRecord("so1", "a", value, msgspec.Raw(text))


def key(stream: int, tenant: int = 1) -> StreamKey:
    """The stream of that number, as the history is asked for it."""
    return StreamKey(tenant, stream)


def documents(storage: Storage, stream: int) -> list[bytes]:
    """The stored updates of a stream, whichever version made them."""
    return [each.document for each in everything(storage, stream)]


def everything(storage: Storage, stream: int) -> list[VersionedUpdate]:
    """The stored updates of a stream, oldest first."""
    return storage.history.page(key(stream), (-(2**63), 2**63 - 1), 1000, 1_000_000)


def document(value: int) -> bytes:
    return b'{"v":%d}' % value


def a_batch(stream: int, first: int, at: int, value: int, position: int = 0) -> Batch:
    """One update, at the offset `first`."""
    return Batch(
        partition=0,
        first_offset=first,
        next_offset=first + 1,
        emitted_offset=first,
        updates=[StoredUpdate(1, stream, at, document(value), 1, first, position)],
    )


def told(batch: Batch, *is_new: bool) -> Batch:
    """The batch, where it is said of each update whether it is certainly new."""
    pairs = zip(batch.updates, is_new, strict=True)
    return replace(batch, updates=[each._replace(is_new=new) for each, new in pairs])
