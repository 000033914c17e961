"""A platform without programs, to be backed up: what they would have stored and sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from port_builders import PARTITIONS, Stored, messages

from sandbox import argument_names
from servioticy import bootstrap
from servioticy.bootstrap import KafkaLog
from servioticy.domain.model import StreamRef
from servioticy.domain.records import EmittedRecord, LogRecord, UpdateRecord, read_record, write
from servioticy.ports.batches import Batch, StoredUpdate, StoredVerdict
from servioticy.ports.cursors import StoredCursor, read_cursor
from servioticy.settings import Settings, changed
from servioticy.storage.database import Database
from servioticy.storage.log_identity import PostgresLogIdentity
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.roles import Role


class Got(NamedTuple):
    """A record of the topic `emitted`: whose, what, and of which offset of the log."""

    stream: StreamRef
    timestamp: int
    place: int | None


class World:
    """Stores of a platform, with schema and topics if `made`, and ways to look into them."""

    def __init__(self, dsn: str, servers: str, prefix: str, *, made: bool = True) -> None:
        self.settings = changed(
            Settings(),
            dsn=dsn,
            bootstrap_servers=servers,
            topic_prefix=prefix,
            partitions=PARTITIONS,
        )
        self.topics = bootstrap.topics(self.settings)
        self.owner = Database(dsn)
        if made:
            self._make()

    def _make(self) -> None:
        bootstrap.make_topics(self.settings)
        self.api = Database(self.settings.store.dsn, role=Role.API)
        self.pipeline = Database(self.settings.store.dsn, role=Role.PIPELINE)
        self.stored = Stored(self.owner, self.api, self.pipeline)
        self.log = KafkaLog(self.settings)
        self.store = PostgresPartitionStore(self.pipeline, argument_names)
        present = bootstrap.present_log(self.settings)
        PostgresLogIdentity(self.pipeline).note(present.topic, present.topic_id)
        for partition in range(PARTITIONS):
            self.store.begin(partition)
            self.store.end(partition)

    def close(self) -> None:
        self.owner.close()
        for each in (getattr(self, "api", None), getattr(self, "pipeline", None)):
            if each is not None:
                each.close()

    # What programs do

    def create(self, id_: str, partition: int = 0) -> int:
        """A Service Object that is in force; the number of its stream `a`."""
        self.stored.create(id_)
        (number,) = self.owner.rows("SELECT max(id) FROM pending_changes")[0]
        self.owner.rows("DELETE FROM pending_changes")
        self.owner.rows(
            "UPDATE service_objects SET owner_partition = %(p)s, route_partition = %(p)s,"
            " active_version = 1, active_change = %(n)s WHERE id = %(id)s",
            {"p": partition, "id": id_, "n": number},
        )
        return self.stored.stream(id_).stream_id

    def accept(self, partition: int, *records: LogRecord) -> list[int]:
        """Append records to the log; their offsets."""
        return [self.log.append(partition, each) for each in records]

    def update(self, id_: str, at: int, **more: Any) -> UpdateRecord:
        return UpdateRecord(id_, "a", at, msgspec.Raw(b'{"v":%d}' % at), **more)

    def store_up_to(
        self, partition: int, end: int, acknowledged: int, rows: Sequence[StoredUpdate]
    ) -> None:
        """Let the pipeline have stored these, and all before this offset."""
        first, _tree, _ = self.store.begin(partition)
        verdict = [
            StoredVerdict(each.tenant, each.stream_id, "emitted", 1, b"{}") for each in rows
        ]
        self.store.store(
            Batch(partition, first, end, acknowledged, updates=rows, verdicts=verdict[:1])
        )
        self.store.end(partition)

    def row(self, stream: int, at: int, offset: int, position: int = 0) -> StoredUpdate:
        return StoredUpdate(self.stored.tenant, stream, at, b'{"v":%d}' % at, 1, offset, position)

    def emit(self, partition: int, *got: Got) -> None:
        """Append to the topic of what is emitted."""
        appender = bootstrap.appender(self.settings)
        for stream, timestamp, offset in got:
            place = None if offset is None else (offset, 0, 0)
            record = EmittedRecord(
                *stream, 1, 1, timestamp, msgspec.Raw(b'{"v":%d}' % timestamp), place
            )
            key = f"{stream.service_object}/{stream.stream}".encode()
            appender.append(self.topics.emitted, partition, write(record), key)
        appender.settle()

    # What is there

    def records(self, partition: int) -> list[LogRecord]:
        """All records of a partition of the log."""
        servers = self.settings.log.bootstrap_servers
        found = messages(servers, self.topics.updates, partition)
        return [read_record(each.value()) for each in found]

    def emitted(self, partition: int) -> list[Got]:
        """All that is emitted in a partition."""
        servers = self.settings.log.bootstrap_servers
        found = messages(servers, self.topics.emitted, partition)
        read = [msgspec.json.decode(each.value() or b"", type=EmittedRecord) for each in found]
        return [
            Got(
                StreamRef(each.service_object, each.stream),
                each.timestamp,
                each.place[0] if each.place else None,
            )
            for each in read
        ]

    def cursor(self, subscription: str) -> StoredCursor:
        sql = "SELECT cursor::text FROM cursors WHERE subscription_id = %(id)s"
        return read_cursor(self.owner.rows(sql, {"id": subscription})[0][0])

    def table(self, name: str) -> list[Any]:
        """All rows of a table, as text, in order."""
        return sorted(text for (text,) in self.owner.rows(f"SELECT t::text FROM {name} AS t"))
