"""The History in Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from servioticy.domain.model import (
    LastUpdate,
    ServiceObjectKey,
    StreamKey,
    StreamRef,
    Timestamp,
)
from servioticy.ports.history import OutsideInput, VersionedUpdate
from servioticy.storage.database import Database, Prepared
from servioticy.storage.queries import queries


class PostgresHistory:
    """What the pipeline has stored, for readers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("history")

    def _prepared(self, name: str, values: Mapping[str, Any]) -> Prepared:
        """Return one that most reads ask: to plan it takes longer than to run it."""
        return Prepared(f"history_{name}", self._sql[name], values)

    def newest(self, stream: StreamKey) -> Timestamp | None:
        """Return the largest timestamp of a stream's updates, or None."""
        row = self._database.row(self._prepared("newest", stream._asdict()))
        return row[0] if row else None

    def page(
        self,
        stream: StreamKey,
        span: tuple[Timestamp, Timestamp],
        most_rows: int,
        most_bytes: int,
        *,
        newest_first: bool = False,
    ) -> list[VersionedUpdate]:
        """Return the first updates with a timestamp within the span, oldest first, or newest.

        They end with the one that reaches `most_rows` or `most_bytes`.
        """
        values = stream._asdict() | {
            "from": span[0],
            "to": span[1],
            "rows": most_rows,
            "bytes": most_bytes,
        }
        statement = "page_back" if newest_first else "page"
        rows = self._database.rows(self._prepared(statement, values))
        return [
            VersionedUpdate(timestamp, document.encode(), v) for timestamp, document, v in rows
        ]

    def updates_after(
        self, stream: StreamKey, after: Timestamp, limit: int, max_bytes: int
    ) -> list[LastUpdate]:
        """Return the next updates with a larger timestamp, oldest first, as many as fit, at
        least one.
        """
        bounds = {"after": after, "limit": limit, "max_bytes": max_bytes}
        values = stream._asdict() | bounds
        rows = self._database.rows(self._prepared("updates_after", values))
        return [LastUpdate(timestamp, document.encode()) for timestamp, document in rows]

    def last_update(self, stream: StreamKey) -> VersionedUpdate | None:
        """Return the stream's last update, or None."""
        row = self._database.row(self._prepared("last_update", stream._asdict()))
        return None if row is None else VersionedUpdate(row[0], row[1].encode(), row[2])

    def progress(self, partition: int) -> int:
        """Return the log offset before which everything is stored."""
        row = self._database.row(self._sql["progress_of"], {"partition": partition})
        return row[0] if row else 0

    def stored(self, partition: int, tenants: Iterable[int]) -> tuple[int, dict[int, int]]:
        """Progress, and for those of the tenants that have any the first record put off."""
        values = {"partition": partition, "tenants": list(tenants)}
        rows = self._database.rows(self._prepared("stored_of", values))
        first = {tenant: offset for _progress, tenant, offset in rows if offset is not None}
        return (rows[0][0] if rows else 0), first

    def put_off(self, partition: int, tenant: int, most: int) -> int:
        """Return how many records of a tenant wait; not counted further than `most`."""
        values = {"partition": partition, "tenant": tenant, "most": most}
        row = self._database.row(self._sql["put_off"], values)
        return row[0] if row else 0

    def held(self, partition: int, tenant: int, most: int) -> int:
        """Return how many records of a tenant wait for others; not counted further than `most`."""
        values = {"partition": partition, "tenant": tenant, "most": most}
        row = self._database.row(self._sql["held"], values)
        return row[0] if row else 0

    def inputs_from_outside(self, reader: ServiceObjectKey) -> list[OutsideInput]:
        """Return what a Service Object reads of other tenants, sorted by name."""
        rows = self._database.rows(self._sql["inputs_from_outside"], reader._asdict())
        return [OutsideInput(StreamRef(*row[:2]), *row[2:]) for row in rows]

    def kept(self, stream: StreamKey, key: bytes) -> bytes | None:
        """Return what a composite stream keeps under a key, if anything."""
        row = self._database.row(self._sql["kept_of_stream"], stream._asdict() | {"key": key})
        return bytes(row[0]) if row else None

    def verdicts(self, stream: StreamKey) -> list[tuple[str, int, bytes]]:
        """Return how computations of a composite stream ended: (verdict, count, last one)."""
        rows = self._database.rows(self._sql["verdicts_of_stream"], stream._asdict())
        return [(verdict, count, last.encode()) for verdict, count, last in rows]

    def processor_us(self, stream: StreamKey) -> int:
        """Return the microseconds of processor time that a composite stream's code has used."""
        row = self._database.row(self._sql["processor_time"], stream._asdict())
        return row[0] if row else 0
