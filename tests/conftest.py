"""A real Postgres and a real broker for all tests of a run, each started when first asked for."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import file_order
import psycopg2
import pytest
import running_platform
from examples import CI, QUICK, USUAL
from file_server import repository  # noqa: F401  a fixture
from hypothesis import settings
from running_platform import platform  # noqa: F401  a fixture

from servioticy.embedded.folder import DataFolder
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.embedded.postgres import EmbeddedPostgres
from servioticy.settings import load
from servioticy.storage.database import Database
from servioticy.storage.migrations import migrate
from servioticy.supervisor.process import Child, Guard
from servioticy.supervisor.program import Program

FOLDER = Path(__file__).parent
SERVERS = {"integration", "end_to_end", "faults"}
"""Folders whose tests all need something real."""

SECONDS_TO_START = 60.0

MEMORY = Path("/dev/shm")
IN_MEMORY = "servioticy-tests-"
"""With the number of the process whose it is."""

BYTES_OF_MEMORY = 4 * 1024**3
"""So much is to be free: the log that Postgres writes ahead grows for a while."""

# No test is timed: a machine may be busy.
settings.register_profile(USUAL, deadline=None)
settings.load_profile(USUAL)
settings.register_profile(QUICK, max_examples=5, deadline=None)
# The same commit has the same examples.
settings.register_profile(CI, deadline=None, derandomize=True, print_blob=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Refuse tests made from a set: each worker has an order of its own, and would run others."""
    for mark in metafunc.definition.iter_markers("parametrize"):
        values = mark.kwargs.get("argvalues", mark.args[1] if len(mark.args) > 1 else ())
        if isinstance(values, set | frozenset):
            pytest.fail(
                f"{metafunc.definition.nodeid}: sort the set it is made from", pytrace=False
            )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of tests, and all that is imported, are there to the end: who looks for garbage
    needs not look at them each time."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by the folder it stands in, and put those in order that wait for much."""
    for item in items:
        room = item.path.relative_to(FOLDER).parts[0]
        item.add_marker(room)
        if room in SERVERS:
            item.add_marker("real")
    file_order.sort(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start the shared platform again, should it rest."""
    if running_platform.needs_platform(item):
        running_platform.rest(needed=True)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop it before the first file that does not need it: the others come before."""
    changes = nextitem is not None and item.path != nextitem.path
    if changes and not file_order.needs_platform(nextitem.path):
        running_platform.rest(needed=False)


_numbers = itertools.count()
_connections: dict[str, Any] = {}


class QuickPostgres(EmbeddedPostgres):
    """Without waiting for the disk: no test cuts the power, and a killed server loses nothing.

    Whatever memory it shares is in its folder: it is killed in the end, and none of it is left.
    """

    def command(self) -> list[str]:
        command = [each.replace("fsync=on", "fsync=off") for each in super().command()]
        return [*command, "-c", "dynamic_shared_memory_type=mmap"]


@pytest.fixture(scope="session")
def quick_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory, where there is some: on a disk it may take half a millisecond to make a
    file, and a database has six hundred."""
    for left in MEMORY.glob(f"{IN_MEMORY}*"):
        if not Path("/proc", left.name.split("-")[2]).exists():  # it was killed
            shutil.rmtree(left, ignore_errors=True)
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= BYTES_OF_MEMORY:
        name = f"{IN_MEMORY}{os.getpid()}-"
        with tempfile.TemporaryDirectory(prefix=name, dir=MEMORY) as folder:
            yield Path(folder)
    else:
        yield tmp_path_factory.mktemp("quick")


@pytest.fixture(scope="session")
def run_part(
    tmp_path_factory: pytest.TempPathFactory,
    quick_folder: Path,
) -> Iterator[Callable[[str, Any], Child]]:
    """Runs an embedded part until the end of the tests, or until it is killed.

    Parts that work in the quick folder are ended before it is removed.
    """
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
def real_postgres(run_part: Callable[[str, Any], Child], quick_folder: Path) -> EmbeddedPostgres:
    """A Postgres; use `dsn` for a database of your own."""
    postgres = QuickPostgres(quick_folder / "postgres")
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


@pytest.fixture(scope="session")
def session_dsn(real_postgres: EmbeddedPostgres, migrated: str) -> Iterator[str]:
    """A database with the schema, for tests that empty it themselves."""
    with _made(real_postgres, f"TEMPLATE {migrated}") as name:
        yield name


@pytest.fixture
def dsn(real_postgres: EmbeddedPostgres, migrated: str) -> Iterator[str]:
    """A database with the schema, for one test."""
    with _made(real_postgres, f"TEMPLATE {migrated} STRATEGY FILE_COPY") as name:
        yield name


@pytest.fixture
def empty_dsn(real_postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database without anything in it, for one test."""
    with _made(real_postgres) as name:
        yield name


@pytest.fixture(scope="module")
def module_dsn(real_postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database without anything in it, for the tests of a file."""
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
