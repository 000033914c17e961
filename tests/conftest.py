"""A real Postgres and a real broker for all tests of a run, each started when first asked for."""

from __future__ import annotations

import itertools
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from file_server import repository  # noqa: F401  a fixture
from running_platform import platform  # noqa: F401  a fixture

from servioticy.embedded.folder import DataFolder
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.embedded.postgres import EmbeddedPostgres
from servioticy.settings import load
from servioticy.storage.database import Database
from servioticy.storage.migrations import migrate
from servioticy.supervisor.process import Child, Guard
from servioticy.supervisor.program import Program

# Folders of tests are named like the packages they test; where the checkout is on the path,
# the packages win.
ROOT = str(Path(__file__).parent.parent)
if ROOT not in sys.path:
    sys.path.append(ROOT)

SECONDS_TO_START = 60.0
_numbers = itertools.count()
_connections: dict[str, Any] = {}


class QuickPostgres(EmbeddedPostgres):
    """Without waiting for the disk: no test cuts the power, and a killed server loses nothing."""

    def command(self) -> list[str]:
        return [each.replace("fsync=on", "fsync=off") for each in super().command()]


@pytest.fixture(scope="session")
def run_part(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str, Any], Child]]:
    """Runs an embedded part until the end of the tests, or until it is killed."""
    folder = DataFolder(tmp_path_factory.mktemp("platform"))
    guard = Guard(folder)
    children: list[Child] = []

    def run(name: str, part: Any) -> Child:
        part.prepare()
        child = Child(Program(name, part.command(), {}), folder.logs / f"{name}.log", guard)
        children.append(child)
        deadline = time.monotonic() + SECONDS_TO_START
        while not part.is_ready():
            assert child.exit_status() is None, child.last_lines()
            assert time.monotonic() < deadline, child.last_lines()
            time.sleep(0.02)
        return child

    yield run
    for child in children:
        child.kill_group()
    guard.close()
    folder.release()


@pytest.fixture(scope="session")
def real_postgres(
    run_part: Callable[[str, Any], Child], tmp_path_factory: pytest.TempPathFactory
) -> EmbeddedPostgres:
    """A Postgres; use `dsn` for a database of your own."""
    postgres = QuickPostgres(tmp_path_factory.mktemp("postgres") / "data")
    run_part("postgres", postgres)
    return postgres


@pytest.fixture(scope="session")
def real_kafka(
    run_part: Callable[[str, Any], Child], tmp_path_factory: pytest.TempPathFactory
) -> EmbeddedKafka:
    """A broker; use `topic_prefix` to have topics of your own."""
    kafka = EmbeddedKafka(tmp_path_factory.mktemp("kafka") / "data", load())
    run_part("kafka", kafka)
    return kafka


@pytest.fixture(scope="session")
def migrated(real_postgres: EmbeddedPostgres) -> str:
    """The name of a database with the schema, to be copied."""
    _admin(real_postgres, "CREATE DATABASE migrated")
    database = Database(_named(real_postgres, "migrated"))
    migrate(database)
    database.close()
    return "migrated"


@pytest.fixture
def dsn(real_postgres: EmbeddedPostgres, migrated: str) -> Iterator[str]:
    """A database with the schema, for one test: made in about 10 ms."""
    with _made(real_postgres, f"TEMPLATE {migrated} STRATEGY FILE_COPY") as name:
        yield name


@pytest.fixture
def empty_dsn(real_postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database without anything in it, for one test."""
    with _made(real_postgres) as name:
        yield name


@pytest.fixture
def topic_prefix() -> str:
    """A prefix that no other test has."""
    return f"test-{uuid.uuid4().hex[:12]}-"


@contextmanager
def _made(postgres: EmbeddedPostgres, how: str = "") -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    _admin(postgres, f"CREATE DATABASE {name} {how}")
    try:
        yield _named(postgres, name)
    finally:
        _admin(postgres, f"DROP DATABASE {name} WITH (FORCE)")


def _admin(postgres: EmbeddedPostgres, statement: str) -> None:
    """Run a statement about databases, on one connection: to open one takes as long."""
    connection = _connections.get(postgres.dsn)
    if connection is None or connection.closed:
        connection = _connections[postgres.dsn] = psycopg2.connect(postgres.dsn)
        connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _named(postgres: EmbeddedPostgres, database: str) -> str:
    return postgres.dsn.rpartition("/")[0] + "/" + database
