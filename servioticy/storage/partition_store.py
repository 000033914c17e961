"""The PartitionStore in Postgres."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import orjson

from servioticy.documents import parse_service_object
from servioticy.documents.service_objects import ArgumentNames
from servioticy.errors import Fenced, Unavailable
from servioticy.messaging.records import EmittedRecord
from servioticy.model import Definition, LastUpdate, ServiceObject
from servioticy.ports import Batch, Placed
from servioticy.storage.database import Database, Row
from servioticy.storage.queries import queries

_CLAIM = 1_701_013  # class of our advisory locks: any number that nothing else uses
PARSED = 20_000
"""Most definitions kept parsed: a change loads its whole component anew."""


class PostgresPartitionStore:
    """What the pipeline keeps: one transaction a batch, with its progress."""

    def __init__(self, database: Database, argument_names: ArgumentNames) -> None:
        self._database = database
        self._argument_names = argument_names
        self._sql = queries("partition")
        self._parsed: dict[tuple[str, int], Definition] = {}

    def begin(self, partition: int) -> tuple[int, int]:
        """Claim a partition; (next offset, emitted offset), made at zero if new.

        The claim is a lock of this thread's connection, so it goes with the worker. It only
        keeps a second worker from trying: what it stores the fence refuses anyway. Raises
        Unavailable while another worker has it.
        """
        values = {"partition": partition, "key": _CLAIM}
        (claimed,) = self._database.rows(self._sql["claim"], values)[0]
        if not claimed:
            raise Unavailable(f"another worker has partition {partition}")
        row = self._database.row(self._sql["progress"], values)
        if row is None:
            self._database.rows(self._sql["begin_partition"], values)
            return self.begin(partition)
        return row[0], row[1]

    def end(self, partition: int) -> None:
        """Give up the claim."""
        self._database.rows(self._sql["give_up"], {"partition": partition, "key": _CLAIM})

    def held(self) -> list[int]:
        """The partitions that some worker has claimed."""
        return [row[0] for row in self._database.rows(self._sql["held"], {"key": _CLAIM})]

    def all_progress(self) -> dict[int, int]:
        """The next offset of every partition that has one."""
        return dict(self._database.rows(self._sql["all_progress"]))

    def forwarded(self, partition: int) -> dict[int, int]:
        """From each partition, the offset before which forwarded records were taken."""
        rows = self._database.rows(self._sql["forwarded"], {"partition": partition})
        return dict(rows)

    def component(self, service_object: str) -> list[Placed]:
        """The Service Objects computed together with this one; empty: it does not exist."""
        rows = self._database.rows(self._sql["component"], {"service_object": service_object})
        return [Placed(self._service_object(row), row[0], row[3], row[5]) for row in rows]

    def _service_object(self, row: Row) -> ServiceObject | None:
        id_, tenant, sequence, _owner, version, _deleted, document, stream_ids = row
        if version is None:
            return None
        definition = self._definition(id_, version, document)
        ids = orjson.loads(stream_ids or "{}")
        declared = {name: ids[name] for *_, name in (each.ref for each in definition.streams)}
        return ServiceObject(definition, tenant, version, sequence, declared)

    def _definition(self, service_object: str, version: int, document: str) -> Definition:
        """A version never changes, so it is parsed once while there is room."""
        key = (service_object, version)
        if key not in self._parsed:
            if len(self._parsed) >= PARSED:
                self._parsed.clear()
            self._parsed[key] = parse_service_object(
                orjson.loads(document), service_object, self._argument_names
            )
        return self._parsed[key]

    def last_updates(self, stream_ids: Iterable[int]) -> dict[int, LastUpdate]:
        """The last updates of those of the streams that have one."""
        rows = self._database.rows(self._sql["last_updates"], {"streams": list(stream_ids)})
        return {stream: LastUpdate(at, text.encode()) for stream, at, text in rows}

    def store(self, batch: Batch) -> None:
        """Store all or nothing. Raises Fenced where progress is not at the first offset."""
        if batch.delete is None and batch.erase is None:
            self._store(batch)
            return
        with self._database.transaction():
            self._store(batch)
            if batch.delete is not None:
                self._delete(batch.delete)
            if batch.erase is not None:
                self._erase(*batch.erase)

    def _store(self, batch: Batch) -> None:
        if not self._database.rows(self._sql["store"], _values(batch)):
            raise Fenced(
                f"partition {batch.partition} is no longer at offset {batch.first_offset}: "
                "another worker has it"
            )

    def _delete(self, service_object: str) -> None:
        for name in (
            "delete_streams",
            "delete_subscriptions_of",
            "delete_definitions",
            "delete_service_object",
        ):
            self._database.rows(self._sql[name], {"delete": service_object})

    def _erase(self, service_object: str, stream: str, change: int) -> None:
        values = {"service_object": service_object, "stream": stream, "change": change}
        for (stream_id,) in self._database.rows(self._sql["erase"], values):
            for name in ("erase_updates", "erase_last_update"):
                self._database.rows(self._sql[name], {"stream": stream_id})

    def not_acknowledged(
        self, partition: int, emitted_offset: int, next_offset: int
    ) -> list[EmittedRecord]:
        """What was stored between the two, in the order it was made."""
        values = {
            "partition": partition,
            "emitted_offset": emitted_offset,
            "next_offset": next_offset,
        }
        rows = self._database.rows(self._sql["not_acknowledged"], values)
        return [
            EmittedRecord(
                service_object, stream, tenant, version, at, msgspec.Raw(document.encode())
            )
            for service_object, stream, tenant, version, at, document in rows
        ]


def _values(batch: Batch) -> dict[str, Any]:
    """The batch as columns. A stream and timestamp met twice is stored as it was last."""
    updates = list({(each.stream_id, each.timestamp): each for each in batch.updates}.values())
    return {
        "partition": batch.partition,
        "first_offset": batch.first_offset,
        "next_offset": batch.next_offset,
        "emitted_offset": batch.emitted_offset,
        "tenants": [each.tenant for each in updates],
        "streams": [each.stream_id for each in updates],
        "timestamps": [each.timestamp for each in updates],
        "documents": [each.document.decode() for each in updates],
        "versions": [each.version for each in updates],
        "offsets": [each.offset for each in updates],
        "positions": [each.position for each in updates],
        "last_tenants": [each.tenant for each in batch.lasts],
        "last_streams": [each.stream_id for each in batch.lasts],
        "last_timestamps": [each.timestamp for each in batch.lasts],
        "last_documents": [each.document.decode() for each in batch.lasts],
        "last_versions": [each.version for each in batch.lasts],
        "verdict_tenants": [each.tenant for each in batch.verdicts],
        "verdict_streams": [each.stream_id for each in batch.verdicts],
        "verdicts": [each.verdict for each in batch.verdicts],
        "verdict_counts": [each.times for each in batch.verdicts],
        "verdict_lasts": [each.last.decode() for each in batch.verdicts],
        "forwarded_from": list(batch.forwarded),
        "forwarded_next": list(batch.forwarded.values()),
        "activate": batch.activate and batch.activate[0],
        "active_version": batch.activate and batch.activate[1],
        "active_change": batch.activate and batch.activate[2],
        "release": list(batch.release[0]) if batch.release else [],
        "release_to": batch.release and batch.release[1],
    }
