"""Queues compared: that of workflows, kept libraries (pgqueuer, procrastinate), share groups.

Each on the same Postgres, which waits for the disk, or a broker, with jobs that do nothing.
Drained: all are put beforehand, and as many takers as are said take and finish them. Waited for:
one at a time is put, and how long it takes until somebody works on it. Processor time is that of
this process and of Postgres or broker together. The libraries are no part of the platform:
`pip install pgqueuer procrastinate`.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import ground, processes, share_groups
from command.platform import postgres_program
from servioticy.domain.workflows.reading import parse_workflow
from servioticy.embedded.folder import DataFolder
from servioticy.embedded.postgres import EmbeddedPostgres
from servioticy.errors import ServioticyError
from servioticy.ports.atoms import Queue
from servioticy.settings import Settings
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.database import Database
from servioticy.storage.migrations import migrate
from servioticy.storage.roles import Role
from servioticy.supervisor.supervisor import Supervisor

PART = 500
PAUSE_SECONDS = 0.02
UNTIL = 2**50
DOCUMENT = {
    "source": {"http": {}},
    "procedures": {"p": {"code": "x => x"}},
    "links": [["source", "p"], ["p", "sink"]],
    "sink": {"none": {}},
}
OURS = Queue(1, "w", 1, 0)


class Options(NamedTuple):
    """What is measured."""

    jobs: int
    waited_for: int
    takers: int
    dsn: str
    settings: Settings


class Seen(NamedTuple):
    """What one of them has shown."""

    put_seconds: float
    drain_seconds: float
    latencies_ms: list[float]
    processor_seconds: float = 0.0
    """Where that is not Postgres'."""


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser("servioticy bench queues")
    parser.add_argument("--jobs", type=int, default=5_000, help="that are drained")
    parser.add_argument("--waited-for", type=int, default=100, help="that come one by one")
    parser.add_argument("--takers", type=int, default=4, help="at once")
    parser.add_argument("--only", choices=sorted(QUEUES), help="one of them")
    own = parser.parse_args(arguments)
    print(f"load {os.getloadavg()[0]:.1f} at the start")
    print(
        f"{'queue':>14} {'put/s':>8} {'drained/s':>10} {'p50 ms':>8} {'p99 ms':>8} {'µs/job':>8}"
    )
    with _postgres() as (dsn, pid):
        _prepare(dsn)
        for name, measure in QUEUES.items():
            if own.only not in (None, name):
                continue
            options = Options(own.jobs, own.waited_for, own.takers, dsn, settings)
            before = processes.with_postgres(pid)
            try:
                seen = measure(options)
            except ModuleNotFoundError as error:
                raise ServioticyError(f"not here: pip install {error.name}") from error
            used = seen.processor_seconds or processes.with_postgres(pid) - before
            count = options.jobs + options.waited_for
            print(
                f"{name:>14} {options.jobs / seen.put_seconds:>8.0f}"
                f" {options.jobs / seen.drain_seconds:>10.0f}"
                f" {ground.percentile(seen.latencies_ms, 0.5):>8.1f}"
                f" {ground.percentile(seen.latencies_ms, 0.99):>8.1f}"
                f" {1e6 * used / count:>8.0f}",
                flush=True,
            )


@contextmanager
def _postgres() -> Iterator[tuple[str, int]]:
    """A Postgres alone: where it is, and its process."""
    with tempfile.TemporaryDirectory(prefix="servioticy-bench-") as data:
        folder = DataFolder(Path(data))
        postgres = EmbeddedPostgres(folder.path / "postgres")
        postgres.prepare()
        supervisor = Supervisor([replace(postgres_program(postgres), together=True)], folder)
        try:
            supervisor.start()
            yield postgres.dsn, supervisor.pids()["postgres"]
        finally:
            supervisor.stop()
            folder.release()


def _prepare(dsn: str) -> None:
    owner = Database(dsn)
    migrate(owner)
    owner.rows(
        "INSERT INTO tenants (id, name) OVERRIDING SYSTEM VALUE VALUES (1, 'bench');"
        "INSERT INTO workflows (id, tenant_id, created_at, updated_at) VALUES ('w', 1, 0, 0);"
        "INSERT INTO workflow_versions (workflow, version, tenant_id, content, created_at)"
        " VALUES ('w', 1, 1, '{}', 0)"
    )
    owner.close()


def _share_groups(flush: str) -> Callable[[Options], Seen]:
    """Return what measures Kafka's, with a broker that writes when we, or the system, say so."""

    def measure(options: Options) -> Seen:
        with (
            tempfile.TemporaryDirectory(prefix="servioticy-bench-") as data,
            share_groups.broker(options.settings, Path(data), flush) as (servers, pid),
        ):
            # The first use of a group makes a topic of the broker's own, once in its life.
            first = share_groups.ShareGroup(servers, "first")
            first.put(1)
            first.drained(1, 1)
            group = share_groups.ShareGroup(servers, "jobs")
            before = time.process_time() + processes.processor_seconds(pid)
            began = time.monotonic()
            for done in range(0, options.jobs, PART):
                group.put(min(PART, options.jobs - done))
            put_seconds = time.monotonic() - began
            drain_seconds = group.drained(options.jobs, options.takers)
            latencies = group.waited_for(options.waited_for, PAUSE_SECONDS)
            used = time.process_time() + processes.processor_seconds(pid) - before
        return Seen(put_seconds, drain_seconds, latencies, used)

    return measure


def _workflows(most: int) -> Callable[[Options], Seen]:
    """Return what measures the queue of workflows, of which so many atoms are taken at once.

    What comes in waits for the disk, and what takers do does not, as in `functions`.
    """

    def measure(options: Options) -> Seen:
        read = parse_workflow(DOCUMENT)
        database = Database(options.dsn, role=Role.DELIVERY)
        atoms = PostgresAtoms(database)

        def put(count: int) -> None:
            atoms.put(1, "w", 1, read, [(b'{"n":1}', 0)] * count, 0)

        def drain(number: int) -> None:
            own = Database(options.dsn, role=Role.DELIVERY, durable=False)
            queues = PostgresAtoms(own)
            while taken := queues.take(OURS, number, most, 0, UNTIL):
                queues.finish(OURS, number, [each.id for each in taken], [], 0)
            own.close()

        began = time.monotonic()
        for first in range(0, options.jobs, PART):
            put(min(PART, options.jobs - first))
        put_seconds = time.monotonic() - began
        began = time.monotonic()
        threads = [threading.Thread(target=drain, args=(n,)) for n in range(options.takers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        drain_seconds = time.monotonic() - began
        latencies = _one_by_one(options, lambda: put(1), most)
        database.close()
        return Seen(put_seconds, drain_seconds, latencies)

    return measure


def _one_by_one(options: Options, put: Callable[[], None], most: int) -> list[float]:
    at: list[float] = []
    worked: list[float] = []
    ready = threading.Event()

    def take() -> None:
        own = Database(options.dsn, role=Role.DELIVERY, durable=False)
        queues = PostgresAtoms(own)
        queues.heard(0.0)
        ready.set()
        while len(worked) < options.waited_for:
            while taken := queues.take(OURS, 1, most, 0, UNTIL):
                worked.extend([time.monotonic()] * len(taken))
                queues.finish(OURS, 1, [each.id for each in taken], [], 0)
            queues.heard(1.0)
        own.close()

    thread = threading.Thread(target=take)
    thread.start()
    ready.wait()
    for _ in range(options.waited_for):
        time.sleep(PAUSE_SECONDS)
        at.append(time.monotonic())
        put()
    thread.join()
    return [1000 * (end - begin) for begin, end in zip(at, worked, strict=True)]


def _library(
    measured: Callable[[Options], Coroutine[Any, Any, Seen]],
) -> Callable[[Options], Seen]:
    return lambda options: asyncio.run(measured(options))


async def _pgqueuer(options: Options) -> Seen:
    pgqueuer, psycopg = (importlib.import_module(each) for each in ("pgqueuer", "psycopg"))
    drivers = importlib.import_module("pgqueuer.db")
    types = importlib.import_module("pgqueuer.types")
    logging.getLogger("pgqueuer").setLevel(logging.ERROR)

    async def opened() -> Any:
        return await psycopg.AsyncConnection.connect(options.dsn, autocommit=True)

    connection = await opened()
    queuer = pgqueuer.PgQueuer(drivers.PsycopgDriver(connection))
    queries = queuer.qm.queries
    await queries.install()
    worked: list[float] = []

    async def work(_job: Any) -> None:
        worked.append(time.monotonic())

    queuer.entrypoint("job")(work)

    began = time.monotonic()
    for first in range(0, options.jobs, PART):
        count = min(PART, options.jobs - first)
        await queries.enqueue(["job"] * count, [b'{"n":1}'] * count, [0] * count)
    put_seconds = time.monotonic() - began
    began = time.monotonic()
    modes = types.QueueExecutionMode
    await queuer.qm.run(batch_size=100, mode=modes.drain)
    drain_seconds = time.monotonic() - began
    worked.clear()
    waiting = pgqueuer.PgQueuer(drivers.PsycopgDriver(await opened()))
    waiting.entrypoint("job")(work)
    running = asyncio.create_task(waiting.qm.run(batch_size=100))
    await asyncio.sleep(1.0)
    at = []
    for _ in range(options.waited_for):
        await asyncio.sleep(PAUSE_SECONDS)
        at.append(time.monotonic())
        await queries.enqueue(["job"], [b'{"n":1}'], [0])
    while len(worked) < options.waited_for:
        await asyncio.sleep(PAUSE_SECONDS)
    waiting.qm.shutdown.set()
    await running
    await connection.close()
    pairs = zip(at, worked, strict=True)
    return Seen(put_seconds, drain_seconds, [1000 * (end - begin) for begin, end in pairs])


async def _procrastinate(options: Options) -> Seen:
    library = importlib.import_module("procrastinate")
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    app = library.App(connector=library.PsycopgConnector(conninfo=options.dsn))
    worked: list[float] = []

    async def work(**_: Any) -> None:
        worked.append(time.monotonic())

    job = app.task(name="job")(work)

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        began = time.monotonic()
        for first in range(0, options.jobs, PART):
            count = min(PART, options.jobs - first)
            await job.batch_defer_async(*[{"n": 1}] * count)
        put_seconds = time.monotonic() - began
        began = time.monotonic()
        how = {"concurrency": options.takers, "delete_jobs": "always"}
        await app.run_worker_async(wait=False, install_signal_handlers=False, **how)
        drain_seconds = time.monotonic() - began
        worked.clear()
        running = asyncio.create_task(
            app.run_worker_async(wait=True, install_signal_handlers=False, **how)
        )
        await asyncio.sleep(1.0)
        at = []
        for _ in range(options.waited_for):
            await asyncio.sleep(PAUSE_SECONDS)
            at.append(time.monotonic())
            await job.defer_async(n=1)
        while len(worked) < options.waited_for:
            await asyncio.sleep(PAUSE_SECONDS)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    pairs = zip(at, worked, strict=True)
    return Seen(put_seconds, drain_seconds, [1000 * (end - begin) for begin, end in pairs])


QUEUES: dict[str, Callable[[Options], Seen]] = {
    "workflows": _workflows(100),
    "workflows by 1": _workflows(1),
    "share groups": _share_groups("always"),
    "shared, unsafe": _share_groups("os"),
    "pgqueuer": _library(_pgqueuer),
    "procrastinate": _library(_procrastinate),
}
