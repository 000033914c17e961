"""The PartitionStore in Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import orjson

from servioticy.domain.documents import Documents
from servioticy.domain.documents.service_objects import ArgumentNames
from servioticy.domain.documents.stored import parsing
from servioticy.domain.model import LastUpdate, ServiceObject
from servioticy.domain.records import EmittedRecord
from servioticy.errors import Fenced, Unavailable
from servioticy.ports.partition_store import Batch, Charge, PlacedObject, PutOff, StoredUpdate
from servioticy.storage.database import Database, Row
from servioticy.storage.queries import queries

_CLAIM = 1_701_013  # class of our advisory locks: any number that nothing else uses
PARSED = 128 * 1024 * 1024
"""Bytes of definitions kept parsed: a change loads its whole component anew."""


class PostgresPartitionStore:
    """What the pipeline keeps: one transaction a batch, with its progress."""

    def __init__(self, database: Database, argument_names: ArgumentNames) -> None:
        self._database = database
        self._sql = queries("partition")
        self._documents = Documents(parsing(argument_names), PARSED)

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

    def component(self, service_object: str) -> list[PlacedObject]:
        """The Service Objects computed together with this one; empty: it does not exist."""
        rows = self._database.rows(self._sql["component"], {"service_object": service_object})
        return [
            PlacedObject(self._service_object(row), row[0], row[1], row[3], row[5]) for row in rows
        ]

    def _service_object(self, row: Row) -> ServiceObject | None:
        id_, tenant, sequence, _owner, version, _deleted, document, stream_ids = row
        if version is None:
            return None
        definition = self._documents.understood(id_, version, document).definition
        ids = orjson.loads(stream_ids or "{}")
        declared = {name: ids[name] for *_, name in (each.ref for each in definition.streams)}
        return ServiceObject(definition, tenant, version, sequence, declared)

    def owner(self, service_object: str) -> tuple[int, int] | None:
        """Whose the Service Object is, and its owner partition; None: it does not exist."""
        row = self._database.row(self._sql["owner"], {"service_object": service_object})
        return None if row is None else (row[0], row[1])

    def last_updates(self, stream_ids: Iterable[int]) -> dict[int, LastUpdate]:
        """The last updates of those of the streams that have one."""
        rows = self._database.rows(self._sql["last_updates"], {"streams": list(stream_ids)})
        return {
            stream: LastUpdate(at, text.encode(), None if uses is None else orjson.loads(uses))
            for stream, at, text, uses in rows
        }

    def store(self, batch: Batch) -> None:
        """Store all or nothing. Raises Fenced where progress is not at the first offset."""
        displaced = superseded(batch.updates)
        late = batch.put_off or batch.taken_up or batch.emitted_late
        ordinary = batch.delete is None and batch.erase is None and batch.release is None
        if ordinary and not displaced and not late:
            self._store(batch)
            return
        with self._database.transaction():
            if batch.release is not None or batch.taken_up:
                # From now on updates are forwarded: they must not be in another's log while
                # a server that fell has forgotten why. And what is computed late is not read
                # back from what was emitted, as what follows progress is.
                self._database.rows(self._sql["wait_for_the_disk"])
            self._store(batch)
            if displaced:
                self._set_aside(displaced, batch)
            if batch.delete is not None:
                self._delete(batch.delete)
            if batch.erase is not None:
                self._erase(*batch.erase)
            if late:
                self._store_put_off(batch)

    def _store(self, batch: Batch) -> None:
        if not self._database.prepared("store_batch", self._sql["store"], _values(batch)):
            raise Fenced(
                f"partition {batch.partition} is no longer at offset {batch.first_offset}: "
                "another worker has it"
            )

    def _store_put_off(self, batch: Batch) -> None:
        """Records that are computed later, and those that have been."""
        if batch.put_off:
            offsets, tenants, service_objects, records = _columns(batch.put_off, 4)
            values = {
                "partition": batch.partition,
                "offsets": numbers(offsets),
                "tenants": numbers(tenants),
                "service_objects": list(service_objects),
                "records": [memoryview(each) for each in records],
            }
            self._database.rows(self._sql["put_off"], values)
        for name, offsets in (
            ("take_up", batch.taken_up),
            ("forget_emitted_late", batch.emitted_late),
        ):
            if offsets:
                values = {"partition": batch.partition, "offsets": numbers(offsets)}
                self._database.rows(self._sql[name], values)

    def _set_aside(self, displaced: Sequence[StoredUpdate], batch: Batch) -> None:
        tenants, streams, timestamps, documents, versions, offsets, positions = _columns(
            displaced, 7
        )
        values = {
            "partition": batch.partition,
            "emitted_offset": batch.emitted_offset,
            "tenants": numbers(tenants),
            "streams": numbers(streams),
            "timestamps": numbers(timestamps),
            "documents": texts(documents),
            "versions": numbers(versions),
            "offsets": numbers(offsets),
            "positions": numbers(positions),
        }
        self._database.rows(self._sql["forget_superseded"], values)
        self._database.rows(self._sql["set_aside"], values)

    def _delete(self, service_object: str) -> None:
        for name in (
            "delete_updates",
            "delete_last_updates",
            "delete_verdicts",
            "delete_usage",
            "delete_streams",
            "delete_edges",
            "delete_definitions",
            "delete_service_object",
        ):
            self._database.rows(self._sql[name], {"delete": service_object})

    def _erase(self, service_object: str, stream: str, change: int) -> None:
        values = {"service_object": service_object, "stream": stream, "change": change}
        for (stream_id,) in self._database.rows(self._sql["erase"], values):
            for name in ("erase_updates", "erase_last_update"):
                self._database.rows(self._sql[name], {"stream": stream_id})

    def charge(self, charges: Sequence[Charge]) -> None:
        """Add to what streams have used."""
        tenants, streams, used = _columns(charges, 3)
        values = {
            "tenants": numbers(tenants),
            "streams": numbers(streams),
            "processor_us": numbers(used),
        }
        self._database.rows(self._sql["charge"], values)

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
        if rows:  # who gets it again must not have got what a fall makes us forget
            with self._database.transaction():
                self._database.rows(self._sql["wait_for_the_disk"])
                self._database.rows(self._sql["touch"], values)
        return [
            EmittedRecord(
                service_object, stream, tenant, version, at, msgspec.Raw(document.encode())
            )
            for service_object, stream, tenant, version, at, document in rows
        ]

    def waiting(self, partition: int) -> dict[int, int]:
        """How many records wait that have been put off, by tenant."""
        return dict(self._database.rows(self._sql["waiting"], {"partition": partition}))

    def put_off(self, partition: int, tenant: int, most: int, most_bytes: int) -> list[PutOff]:
        """The tenant's records that were put off, oldest first; one at least if there is any."""
        values = {
            "partition": partition,
            "tenant": tenant,
            "most": most,
            "most_bytes": most_bytes,
        }
        return [
            PutOff(offset, tenant, service_object, bytes(record))
            for offset, service_object, record in self._database.rows(
                self._sql["records_put_off"], values
            )
        ]

    def taken_up(self, partition: int) -> list[int]:
        """Offsets of records that are computed late and perhaps not all emitted."""
        rows = self._database.rows(self._sql["taken_up"], {"partition": partition})
        return [row[0] for row in rows]


def superseded(updates: Sequence[StoredUpdate]) -> list[StoredUpdate]:
    """Those that a later one of the same stream and timestamp displaces."""
    last = {(each.stream_id, each.timestamp): each for each in updates}
    if len(last) == len(updates):
        return []
    return [each for each in updates if last[each.stream_id, each.timestamp] is not each]


def _values(batch: Batch) -> dict[str, Any]:
    """The batch as columns. A stream and timestamp met twice is stored as it was last."""
    updates = list({(each.stream_id, each.timestamp): each for each in batch.updates}.values())
    tenants, streams, timestamps, documents, versions, offsets, positions = _columns(updates, 7)
    last_updates = _columns(batch.last_updates, 6)
    verdicts = _columns(batch.verdicts, 5)
    return {
        "partition": batch.partition,
        "first_offset": batch.first_offset,
        "next_offset": batch.next_offset,
        "emitted_offset": batch.emitted_offset,
        "tenants": numbers(tenants),
        "streams": numbers(streams),
        "timestamps": numbers(timestamps),
        "documents": texts(documents),
        "versions": numbers(versions),
        "offsets": numbers(offsets),
        "positions": numbers(positions),
        "last_tenants": numbers(last_updates[0]),
        "last_streams": numbers(last_updates[1]),
        "last_timestamps": numbers(last_updates[2]),
        "last_documents": texts(last_updates[3]),
        "last_versions": numbers(last_updates[4]),
        "last_uses": texts(last_updates[5]),
        "verdict_tenants": numbers(verdicts[0]),
        "verdict_streams": numbers(verdicts[1]),
        "verdicts": texts([each.encode() for each in verdicts[2]]),
        "verdict_counts": numbers(verdicts[3]),
        "verdict_lasts": texts(verdicts[4]),
        "forwarded_from": numbers(batch.forwarded),
        "forwarded_next": numbers(batch.forwarded.values()),
        "activate": batch.activate and batch.activate[0],
        "active_version": batch.activate and batch.activate[1],
        "active_change": batch.activate and batch.activate[2],
        "release": list(batch.release[0]) if batch.release else [],
        "release_to": batch.release and batch.release[1],
    }


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> Sequence[Sequence[Any]]:
    return list(zip(*rows, strict=True)) if rows else [()] * width


def numbers(values: Iterable[int]) -> str:
    """An array of integers as Postgres reads it: a third of the cost of a list to everyone."""
    return "{" + ",".join(map(str, values)) + "}"


def texts(values: Iterable[bytes | None]) -> str:
    """An array of texts as Postgres reads it."""
    quoted = (
        "NULL"
        if value is None
        else '"' + value.decode().replace("\\", "\\\\").replace('"', '\\"') + '"'
        for value in values
    )
    return "{" + ",".join(quoted) + "}"
