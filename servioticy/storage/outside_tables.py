"""Tables of other Postgres: rows go in as JSON, and become what the columns are of."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg2
from cachetools import LRUCache
from psycopg2.extensions import make_dsn

from servioticy.domain.workflows.tables import Server
from servioticy.errors import Rejected
from servioticy.ports.outside_tables import RowsRefused
from servioticy.storage.connections import Connection
from servioticy.storage.database import Database, Prepared, Row

SECONDS, ANSWER_SECONDS = 5.0, 10.0
"""For a statement, as its server is told; and for an answer, where the server does not do so."""
MAX_SERVERS = 100

HOPELESS = (psycopg2.DataError, psycopg2.IntegrityError, psycopg2.NotSupportedError, Rejected)
"""What is wrong with a row: another attempt would end so, too. A table that is not there, or has
other columns, somebody may make what it has to be."""


class PostgresOutsideTables:
    """Each thread has a connection to each server, for as long as it lives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._databases: LRUCache[Server, Database] = LRUCache(MAX_SERVERS)

    def put(
        self,
        server: Server,
        schema: str,
        table: str,
        columns: Sequence[str],
        key: Sequence[str],
        rows: Sequence[bytes],
    ) -> None:
        """Write rows; see `OutsideTables`."""
        text = "[" + b",".join(rows).decode() + "]"
        try:
            self._database(server).rows(statement(schema, table, columns, key), {"rows": text})
        except (psycopg2.Error, Rejected) as error:
            raise RowsRefused(str(error).strip(), isinstance(error, HOPELESS)) from error

    def _database(self, server: Server) -> Database:
        with self._lock:
            found = self._databases.get(server)
            if found is None:
                dsn = make_dsn(
                    host=server.host,
                    port=server.port,
                    dbname=server.database,
                    user=server.user,
                    password=server.secret,
                    sslmode=server.tls,
                    options=f"-c statement_timeout={int(SECONDS * 1000)}",
                )
                found = self._databases[server] = _Impatient(dsn)
            return found


class _Impatient(Database):
    """Who is not answered is lost after a while, though the server's machine is there."""

    def _run(
        self, connection: Connection, sql: str | Prepared, values: Mapping[str, Any] | None
    ) -> list[Row]:
        with _cut_off(connection.raw, ANSWER_SECONDS):
            return super()._run(connection, sql, values)


@contextmanager
def _cut_off(connection: Any, seconds: float) -> Iterator[None]:
    """End what is asked over a connection after so long, as if the server had."""

    def cut() -> None:
        with suppress(OSError):
            own.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    with socket.socket(fileno=os.dup(connection.fileno())) as own:
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def statement(schema: str, table: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """Return what writes rows of these columns: all names are a tenant's, and quoted."""
    into, own = f"{_name(schema)}.{_name(table)}", [_name(each) for each in columns]
    keys = [_name(each) for each in key]
    others = [each for each in own if each not in keys]
    given = ", ".join(f"given.{each}" for each in own)
    text = [
        f"INSERT INTO {into} ({', '.join(own)})",
        f"SELECT {given}",
        f"FROM pg_catalog.jsonb_populate_recordset(NULL::{into}, %(rows)s::jsonb) AS given",
    ]
    if keys:
        changes = ", ".join(f"{each} = excluded.{each}" for each in others)
        then = f"UPDATE SET {changes}" if others else "NOTHING"
        text.append(f"ON CONFLICT ({', '.join(keys)}) DO {then}")
    return " ".join(text)


def _name(name: str) -> str:
    """Quote it, for Postgres, and for psycopg2, which looks for values behind percent signs."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'
