"""An API over a Postgres and a log in memory, and a pipeline that only stores."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from flask import Flask
from flask.testing import FlaskClient
from memory.log import MemoryLog
from memory.state import State
from python_evaluator import PythonEvaluator
from werkzeug.test import TestResponse

from api.trials.stored import Stored
from api.trials.trying import TrialsHere
from sandbox.text import argument_names
from servioticy.bootstrap import ports_on
from servioticy.domain.evaluators.evaluator import Evaluator
from servioticy.domain.model import StreamKey
from servioticy.domain.records import LogRecord, UpdateRecord
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.storage.database import Database, Prepared, Row
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.roles import Role

NOW = 1_500_000_000.0
SIMPLE = {"streams": {"a": {"channels": {"x": {"type": "number"}}}}}
UPDATE = b'{"channels":{"x":{"current-value":1}},"lastUpdate":1}'


class RoleDatabase(Database):
    """What a program is to Postgres. Answers while the state of the present test says so."""

    def __init__(self, dsn: str, role: Role | None = None, *, shared: bool = False) -> None:
        super().__init__(dsn, role=role, shared=shared)
        self.state: State | None = None

    def rows(self, sql: str | Prepared, values: Mapping[str, Any] | None = None) -> list[Row]:
        if self.state is not None:
            self.state.ask_postgres()
        return super().rows(sql, values)


class SwitchedDatabase(RoleDatabase):
    """The owner's, who sees all, and beside it those of the programs."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self.api = RoleDatabase(dsn, Role.API, shared=True)
        self.pipeline = RoleDatabase(dsn, Role.PIPELINE)
        self.delivery = RoleDatabase(dsn, Role.DELIVERY)
        self.rows(emptying(self.rows(_TABLES)))

    def begin(self, state: State) -> None:
        """Be as new, in a millisecond or two: a test fills few of the tables."""
        self.state = self.api.state = self.pipeline.state = self.delivery.state = state
        self.rows("SELECT be_empty()")

    def close(self) -> None:
        super().close()
        for each in (self.api, self.pipeline, self.delivery):
            each.close()


_TABLES = """
    SELECT t.relname, array_agg(s.relname) FILTER (WHERE s.relname IS NOT NULL)
      FROM pg_class t
      LEFT JOIN pg_depend d ON d.refobjid = t.oid AND d.deptype IN ('a', 'i')
      LEFT JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
     WHERE t.relnamespace = 'public'::regnamespace
       AND t.relkind = 'r' AND t.relname <> 'migrations'
     GROUP BY t.relname"""
"""Each table with its sequences."""


def emptying(tables: Sequence[Row]) -> str:
    """SQL that makes the function `be_empty`.

    TRUNCATE makes a file for each table and index, which takes thirty times as long; and it
    takes all tables that refer to one of those that have rows.
    """
    steps = [
        f"IF EXISTS (SELECT FROM {name}) THEN DELETE FROM {name}; END IF;" for name, _ in tables
    ]
    steps += [
        f"IF (SELECT is_called FROM {each}) THEN ALTER SEQUENCE {each} RESTART; END IF;"
        for _, sequences in tables
        for each in sequences or ()
    ]
    # Neither foreign keys nor triggers have a say.
    return f"""CREATE OR REPLACE FUNCTION be_empty() RETURNS void LANGUAGE plpgsql
        SET session_replication_role = replica AS $$BEGIN {" ".join(steps)} END$$"""


class Platform:
    """What the API asks, and ways to look at it. `state` switches Postgres and broker off."""

    def __init__(self, database: SwitchedDatabase, partitions: int = 2) -> None:
        self.state = State(log=[[] for _ in range(partitions)])
        self.database = database
        self.database.begin(self.state)
        self.log = MemoryLog(self.state)
        self.ports = ports_on(self.database.api, self.log, lambda: {0: 10, 1: 20})
        self.store = PostgresPartitionStore(self.database.pipeline, argument_names)

    def records(self, partition: int, first_offset: int = 0) -> list[tuple[int, LogRecord]]:
        """What stands in a partition of the log from an offset on, with each one's offset."""
        return self.log.records(partition, first_offset)

    def stream(self, service_object: str, name: str = "a") -> StreamKey:
        """The stream in the store."""
        sql = (
            "SELECT tenant_id, id FROM streams"
            " WHERE service_object = %(service_object)s AND name = %(name)s"
        )
        row = self.database.row(sql, {"service_object": service_object, "name": name})
        assert row is not None
        return StreamKey(*row)

    def document(self, service_object: str, version: int = 1) -> Any:
        """A stored document."""
        sql = (
            "SELECT document::text FROM definitions"
            " WHERE service_object = %(service_object)s AND version = %(version)s"
        )
        row = self.database.row(sql, {"service_object": service_object, "version": version})
        assert row is not None
        return orjson.loads(row[0])

    def put_document(self, service_object: str, document: Any, version: int = 1) -> None:
        """Make a stored document another one, whatever the API would say of it."""
        sql = (
            "UPDATE definitions SET document = %(document)s"
            " WHERE service_object = %(service_object)s AND version = %(version)s"
        )
        text = orjson.dumps(document).decode()
        values = {"service_object": service_object, "version": version, "document": text}
        self.database.rows(sql, values)


@dataclass
class Caller:
    """A tenant with a client of its own."""

    client: FlaskClient
    token: str

    def ask(self, method: str, path: str, **more: Any) -> TestResponse:
        headers = {"Authorization": self.token, **more.pop("headers", {})}
        return self.client.open(path, method=method, headers=headers, **more)

    def create(self, document: Any = SIMPLE) -> str:
        answer = self.ask("POST", "/", data=orjson.dumps(document))
        assert answer.status_code == 201, answer.text
        id_: str = answer.get_json()["id"]
        return id_

    def put(self, service_object: str, body: bytes = UPDATE, stream: str = "a") -> TestResponse:
        return self.ask("PUT", f"/{service_object}/streams/{stream}", data=body)


@dataclass
class Served:
    """The API and what stands behind it."""

    app: Flask
    platform: Platform

    def tenant(self, name: str) -> Caller:
        return Caller(self.app.test_client(), self.platform.ports.tenants.create_tenant(name))

    def stop_clock(self) -> None:
        """Let no time pass for rates, however slow the machine is: nothing comes back of them."""
        now = time.monotonic()
        self.app.extensions["servioticy"].quotas._clock = lambda: now

    def store(self) -> None:
        """Store all updates in the log, as a pipeline without composites."""
        store = self.platform.store
        for partition in range(self.platform.log.partitions()):
            for offset, record in self.platform.records(partition, store.begin(partition)[0]):
                updates = []
                if isinstance(record, UpdateRecord):
                    key = self.platform.stream(*record.origin)
                    text = bytes(record.update)
                    updates = [StoredUpdate(*key, record.timestamp, text, 1, offset, 0)]
                store.store(Batch(partition, offset, offset + 1, offset, updates))
            store.end(partition)


def trials(platform: Platform, evaluator: Evaluator | None = None) -> TrialsHere:
    """Where changes are tried; without an evaluator each value is its trigger's timestamp."""
    ports = platform.ports
    stored = Stored(ports.history, ports.statements("last_updates"), ports.statements("trials"))
    by_time = PythonEvaluator(lambda trigger, _values: trigger.timestamp)
    return TrialsHere(stored, evaluator or by_time)
