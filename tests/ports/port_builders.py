"""The ports side by side, and what stands in them, for the suites of this folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from confluent_kafka import Consumer, Message, TopicPartition

from servioticy.messaging.records import (
    DeadLetter,
    EmittedRecord,
    LogRecord,
    UpdateRecord,
)
from servioticy.model import StreamRef
from servioticy.ports import (
    Catalog,
    History,
    Log,
    NewServiceObject,
    Output,
    PartitionStore,
    Stored,
)

PARTITIONS = 2


@dataclass
class Storage:
    """The ports that share one database."""

    catalog: Catalog
    history: History
    store: PartitionStore
    other_store: PartitionStore
    """another worker's"""
    rows: Callable[[str], int]
    """how many rows a table has, those too that nobody can read"""

    def tenant(self, name: str = "acme") -> tuple[int, str]:
        """A tenant's id and one of its tokens."""
        token = self.catalog.create_tenant(name)
        tenant = self.catalog.tenant_of(token)
        assert tenant is not None
        return tenant, token

    def create(self, tenant: int, id_: str, groups: tuple[tuple[str, StreamRef], ...] = ()) -> Any:
        """Keep a Service Object with the streams `a` and `b`."""
        return self.catalog.create(a_service_object(tenant, id_, groups), PARTITIONS)

    def stored_as(self, id_: str, stream: str = "a") -> int:
        """The number under which the pipeline stores updates of a stream now."""
        (found,) = [each for each in self.store.component(id_) if each.id == id_]
        assert found.service_object is not None
        return found.service_object.stream_ids[stream]

    def purge(self, partition: int = 0) -> None:
        """Remove all that is deleted or erased."""
        while self.store.purge(partition, 1000, 10**6) is not None:
            pass

    def stream_id(self, token: str, id_: str, stream: str = "a") -> int:
        """The number under which updates of a stream are stored."""
        address = self.catalog.address(token, id_, stream)
        assert address is not None
        assert address.stream_id is not None
        return address.stream_id


@dataclass
class Messaging:
    """The ports that share one broker, and what a reader finds in its topics."""

    log: Log
    output: Callable[[int], Output]
    records: Callable[[int], list[LogRecord]]
    emitted: Callable[[], list[EmittedRecord]]
    dead_letters: Callable[[], list[DeadLetter]]


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


def documents(storage: Storage, stream: int) -> list[bytes]:
    """The stored updates of a stream, whichever version made them."""
    return [each.document for each in everything(storage, stream)]


def everything(storage: Storage, stream: int) -> list[Stored]:
    """The stored updates of a stream, oldest first."""
    return storage.history.page(stream, (-(2**63), 2**63 - 1), 1000, 1_000_000)
