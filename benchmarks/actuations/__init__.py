"""Actuations of thousands of devices, half of them over MQTT and half over sockets.

Postgres, broker, API and delivery run; the benchmark asks for actuations as composite streams do.
The clock starts when the store has one, and stops when its device has read it; all are through
when the store knows of each that it was taken. A socket's device says `done` of each, over the
socket and from there to the API; an MQTT client acknowledges. The devices are of another process,
on the same machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import NamedTuple

from benchmarks import ground, processes
from benchmarks.actuations.devices import Device, be_devices
from command.platform import ALIVE_FILE, answers
from servioticy import bootstrap
from servioticy.domain.model import ServiceObjectKey
from servioticy.embedded import tcp_ports as ports
from servioticy.ports.actuations import ActuationRequest
from servioticy.ports.change_store import NewServiceObject
from servioticy.settings import Settings, changed, to_environment
from servioticy.storage.actuations import PostgresActuations
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.tenants import PostgresTenants
from servioticy.supervisor.program import Program
from servioticy.supervisor.supervisor import Supervisor

DOCUMENT = b'{"streams":{"s":{"channels":{}}},"actions":[{"name":"blink","timeout":600}]}'
TENANTS = 4
THREADS = 4
SECONDS = 120.0
LOOK_SECONDS = 0.02
PARTS = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print p50, p90, p99 and the largest in milliseconds, and what the programs have used."""
    parser = argparse.ArgumentParser("servioticy bench actuations")
    parser.add_argument("--devices", type=int, default=2_000)
    parser.add_argument("--actuations", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=200.0, help="a second; then all at once")
    options = parser.parse_args(arguments)
    with ground.stores(changed(settings, live_sockets_per_tenant=options.devices)) as stores:
        names = ("api_port", "live_port", "mqtt_port", "api_metrics_port", "live_metrics_port")
        found = changed(stores.settings, **{name: ports.free() for name in names})
        devices = _devices(found, options.devices)
        with _programs(found, stores) as pids, _connected(found, devices) as heard:
            size = processes.memory_megabytes(pids["delivery"])
            print(f"{len(devices)} devices: delivery has {size:.0f} MB", flush=True)
            half = options.actuations // 2
            for count, rate in ((half, options.rate), (options.actuations - half, None)):
                print(_measured(found, devices, heard, pids, count, rate), flush=True)


class _Round(NamedTuple):
    made: dict[str, float]
    """By the actuation's id, when the store had it."""
    seconds: float
    """Until all had been taken."""


def _measured(
    settings: Settings,
    devices: Sequence[Device],
    heard: Connection,
    pids: dict[str, int],
    count: int,
    rate: float | None,
) -> str:
    before = _used(pids)
    found = _asked(settings, devices, count, rate)
    heard.send(count)
    times: dict[str, float] = heard.recv()
    waits = [(times[id_] - at) * 1000 for id_, at in found.made.items()]
    cuts = " ".join(f"{name} {ground.percentile(waits, part):.1f}" for name, part in PARTS)
    used = ", ".join(
        f"{name} {1000 * (after - before[name]) / count:.2f}"
        for name, after in _used(pids).items()
    )
    how = "at once" if rate is None else f"{rate:.0f} a second"
    size = processes.memory_megabytes(pids["delivery"])
    return (
        f"{count} actuations, {how}: {cuts} max {max(waits):.1f} ms; all taken after "
        f"{found.seconds:.1f} s ({count / found.seconds:.0f}/s); {used} ms of processor each; "
        f"delivery {size:.0f} MB"
    )


def _used(pids: dict[str, int]) -> dict[str, float]:
    """Return the seconds of processor time of each program so far, with all below it."""
    seconds, tree = processes.processor_seconds, processes.tree
    return {name: sum(map(seconds, tree(pid))) for name, pid in pids.items()}


def _asked(
    settings: Settings, devices: Sequence[Device], count: int, rate: float | None
) -> _Round:
    """Ask for so many, of each device in its turn, and wait until all are taken."""
    made: dict[str, float] = {}
    began = time.perf_counter()

    def ask(first: int) -> None:
        database = bootstrap.connect(settings, durable=False)
        store = PostgresActuations(database)
        for number in range(first, count, THREADS):
            if rate is not None:
                time.sleep(max(0.0, began + number / rate - time.perf_counter()))
            device, id_ = devices[number % len(devices)], uuid.uuid4().hex
            store.ask(device.key, ActuationRequest(id_, "blink", ""), int(time.time() * 1000))
            made[id_] = time.perf_counter()
        database.close()

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(ask, range(THREADS)))
    database = bootstrap.connect(settings, durable=False)
    sql = "SELECT count(*) FROM actuations WHERE state IN ('queued', 'sent')"
    until = time.perf_counter() + SECONDS
    while database.rows(sql, {})[0][0]:
        if time.perf_counter() > until:
            raise RuntimeError(f"not all are taken after {SECONDS:.0f} s")
        time.sleep(LOOK_SECONDS)
    seconds = time.perf_counter() - began
    database.close()
    return _Round(made, seconds)


def _devices(settings: Settings, count: int) -> list[Device]:
    """Make a Service Object for each, of several tenants."""
    database = bootstrap.connect(settings, durable=False)
    tenants, store = PostgresTenants(database), PostgresChangeStore(database)
    tokens = [tenants.create_tenant(f"bench {number}") for number in range(TENANTS)]
    found = []
    for number in range(count):
        token = tokens[number % TENANTS]
        key = ServiceObjectKey(tenants.tenant_of(token) or 0, f"lamp{number}")
        store.create(NewServiceObject(key.id, key.tenant, False, DOCUMENT, ("s",), (), 1), 1)
        found.append(Device(key, token, number % (2 * TENANTS) < TENANTS))
    database.close()
    return found


@contextmanager
def _connected(settings: Settings, devices: Sequence[Device]) -> Iterator[Connection]:
    """The devices, from when all of them are connected."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    places = settings.mqtt.port, settings.delivery.port
    process = spawn.Process(target=partial(be_devices, devices, *places, theirs), daemon=True)
    process.start()
    try:
        ours.recv()
        yield ours
    finally:
        process.terminate()
        process.join()


@contextmanager
def _programs(settings: Settings, stores: ground.Stores) -> Iterator[dict[str, int]]:
    """The API, delivery and the broker, and all processes that are measured."""
    environment = to_environment(settings)
    paths = {
        "api": (settings.api.port, "/private/health"),
        "delivery": (settings.delivery.port, "/health"),
    }
    programs = [
        Program(
            name,
            [sys.executable, "-P", "-m", name],
            environment,
            partial(answers, settings.host, *place),
        )
        for name, place in paths.items()
    ]
    alive = settings.data_path / "broker.alive"
    broker = [sys.executable, "-P", "-m", "broker"]
    beside = {**environment, ALIVE_FILE: str(alive)}
    programs.append(Program("broker", broker, beside, alive.exists))
    supervisor = Supervisor(programs, stores.folder)
    try:
        supervisor.start()
        yield {**supervisor.pids(), **stores.pids}
    finally:
        supervisor.stop()
