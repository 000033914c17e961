"""What benchmarks stand on: a platform or parts of one, a tenant of their own, percentiles."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from command.platform import (
    PIPELINE_SECONDS,
    READY_FILE,
    Platform,
    postgres_program,
    prepare_stores,
)
from servioticy import trust
from servioticy.client.rest import Rest
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.folder import DataFolder
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.embedded.postgres import EmbeddedPostgres
from servioticy.settings import Settings, changed, to_environment
from servioticy.settings.places import api_url
from servioticy.storage.database import Database
from servioticy.storage.tenants import PostgresTenants
from servioticy.supervisor.program import Program
from servioticy.supervisor.supervisor import Supervisor


@contextmanager
def platform(settings: Settings) -> Iterator[Settings]:
    """The platform that runs on the settings' data folder, else one on a folder of its own."""
    if settings.store.dsn and settings.log.bootstrap_servers:
        yield settings
        return
    with folder(settings) as own, running(own) as found:
        yield found


@contextmanager
def folder(settings: Settings) -> Iterator[Settings]:
    """The settings of a platform on a folder and ports of its own."""
    with tempfile.TemporaryDirectory(prefix="servioticy-bench-") as data:
        free = {
            name: ports.free()
            for name in ("api_port", "live_port", "mqtt_port", "live_metrics_port")
        }
        yield changed(settings, data=data, **free)


@contextmanager
def running(own: Settings) -> Iterator[Settings]:
    """A platform that runs with these settings, and what has come of them."""
    started = Platform(own)
    try:
        started.supervisor.start()
        yield started.settings
    finally:
        started.close()


def token(settings: Settings, tenant: str = "bench") -> str:
    """Return a token of the tenant of that name, which is made where there is none."""
    database = Database(settings.store.dsn)
    try:
        return PostgresTenants(database).create_tenant(tenant)
    finally:
        database.close()


def client(settings: Settings, token: str) -> Rest:
    """Return a client of the REST API, for what is not measured."""
    return Rest(api_url(settings), token, ca=trust.own(settings))


def chain(length: int) -> dict[str, Any]:
    """Return a document with a simple stream `s0` and composites `s1`, `s2`, ...

    Each from the last.
    """
    streams: dict[str, Any] = {"s0": {"channels": {"v": {"type": "number"}}}}
    for n in range(1, length + 1):
        code = f'function(s{n - 1}){{return s{n - 1}.channels.v["current-value"]+1}}'
        streams[f"s{n}"] = {"channels": {"v": {"type": "number", "current-value": code}}}
    return {"name": f"chain of {length}", "version": "0.2.0", "streams": streams}


def percentile(values: Sequence[float], part: float) -> float:
    """Return the value below which this part of them lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


@dataclass(frozen=True, slots=True)
class Stores:
    """A Postgres and a broker that run, and their processes."""

    settings: Settings
    folder: DataFolder
    pids: dict[str, int]


@contextmanager
def stores(settings: Settings, partitions: int = 1) -> Iterator[Stores]:
    """A Postgres and a broker alone, on a folder of their own, with schema and topics."""
    with tempfile.TemporaryDirectory(prefix="servioticy-bench-") as data:
        folder = DataFolder(Path(data))
        postgres = EmbeddedPostgres(folder.path / "postgres")
        kafka = EmbeddedKafka(folder.path / "kafka", settings)
        postgres.prepare()
        kafka.prepare()
        programs = [
            replace(postgres_program(postgres), together=True),
            Program("kafka", kafka.command(), kafka.environment(), kafka.is_ready),
        ]
        supervisor = Supervisor(programs, folder)
        try:
            supervisor.start()
            found = changed(
                settings,
                data=data,
                dsn=postgres.dsn,
                bootstrap_servers=kafka.bootstrap_servers,
                partitions=partitions,
            )
            prepare_stores(found)
            yield Stores(found, folder, supervisor.pids())
        finally:
            supervisor.stop()
            folder.release()


@contextmanager
def pipeline(stores: Stores, settings: Settings) -> Iterator[int]:
    """The pipeline program alone, from when it works on every partition; its process."""
    ready = stores.folder.path / "pipeline.ready"
    ready.unlink(missing_ok=True)
    program = Program(
        "pipeline",
        [sys.executable, "-P", "-m", "pipeline"],
        {**to_environment(settings), READY_FILE: str(ready)},
        ready.exists,
        ready_seconds=PIPELINE_SECONDS,
    )
    supervisor = Supervisor([program], stores.folder)
    try:
        supervisor.start()
        yield supervisor.pids()["pipeline"]
    finally:
        supervisor.stop()
