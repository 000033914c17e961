"""What it costs that any of several delivery processes answers any socket: all read everything.

Postgres, the broker of the log and 1, 2, 4 and 8 delivery processes run; the benchmark emits
updates as the pipeline does, at a steady rate. First of streams that nobody watches: every process
skips them by their key. Then of streams with a socket each, which are spread over the processes:
one delivers an update, and all others skip it. What the processes take while nothing is emitted is
taken off. Nothing of that is latency, and on few cores nothing of it is throughput.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import msgspec

from benchmarks import ground, processes
from benchmarks.delivery import program
from benchmarks.delivery.listeners import Wanted, count
from servioticy import bootstrap
from servioticy.domain.emissions import emission
from servioticy.domain.records import EmittedRecord
from servioticy.embedded import tcp_ports as ports
from servioticy.ports.change_store import NewServiceObject
from servioticy.settings import Settings, changed
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.tenants import PostgresTenants
from servioticy.supervisor.supervisor import Supervisor

STREAM = "s"
DOCUMENT = b'{"streams":{"s":{"channels":{"v":{"type":"number"}}}}}'
BURST_SECONDS = 0.02
SETTLED_SECONDS = 1.5
"""After what was emitted last, in which it is read, and claims have been looked at."""


class Cost(NamedTuple):
    """Seconds of the processor."""

    idle: float
    """A second, of one process."""
    skipped: float
    """An update that is skipped, at one process."""
    all_together: float
    """An update that is delivered to one socket, at all processes together."""

    def delivered(self, number: int) -> float:
        """Return what one that is delivered costs where it is, of so many processes."""
        return self.all_together - (number - 1) * self.skipped


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print microseconds of the processor for an update, and the load of the machine."""
    parser = argparse.ArgumentParser("servioticy bench several")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--sockets", type=int, default=40, help="each of a stream of its own")
    parser.add_argument("--rate", type=float, default=500.0, help="updates a second")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    options = parser.parse_args(arguments)
    with ground.stores(changed(settings, mqtt_port=0)) as stores:
        source = _Source(stores.settings, options.sockets)
        for number in options.processes:
            before = os.getloadavg()[0]
            with _running(stores, number) as running:
                measured = _measure(running, source, options.rate, options.seconds)
            print(_told(number, measured, before, os.getloadavg()[0]), flush=True)


def _told(number: int, cost: Cost, before: float, after: float) -> str:
    return (
        f"{number} processes: skipped {1e6 * cost.skipped:.1f} µs at each; "
        f"delivered {1e6 * cost.delivered(number):.1f} µs where its socket is, "
        f"{1e6 * cost.all_together:.1f} µs at all together; "
        f"idle {1e3 * cost.idle:.1f} ms a second each; load {before:.1f}, {after:.1f}"
    )


class _Source:
    """A tenant with streams of which updates are emitted, and another name that nobody watches."""

    def __init__(self, settings: Settings, streams: int) -> None:
        database = bootstrap.connect(settings, durable=False)
        tenants = PostgresTenants(database)
        self.token = tenants.create_tenant("bench")
        self._tenant = tenants.tenant_of(self.token) or 0
        self.names = [f"bench-{number}" for number in range(streams)]
        for name in self.names:
            new = NewServiceObject(name, self._tenant, False, DOCUMENT, (STREAM,), (), 1)
            PostgresChangeStore(database).create(new, 1)
        self._emitter = bootstrap.emitter(settings, 0)
        self._last = 0

    def emit(self, names: Sequence[str], rate: float, seconds: float) -> int:
        """Emit updates of these in turn, so many a second; return how many that were."""
        began, sent = time.perf_counter(), 0
        while sent < rate * seconds:
            due = int(min(seconds, time.perf_counter() - began + BURST_SECONDS) * rate)
            records = [self._record(names[(sent + n) % len(names)]) for n in range(due - sent)]
            sent = due
            if records:
                self._emitter.emit(self._last, [emission(each) for each in records])
                self._emitter.flush()
            time.sleep(BURST_SECONDS)
        return sent

    def _record(self, name: str) -> EmittedRecord:
        self._last += 1
        document = b'{"channels":{"v":{"current-value":%d}},"lastUpdate":%d}'
        raw = msgspec.Raw(document % (self._last, self._last))
        return EmittedRecord(name, STREAM, self._tenant, 1, self._last, raw, (self._last, 0))


class _Running(NamedTuple):
    ports: list[int]
    pids: list[int]

    def seconds(self) -> float:
        """Return what all of them have taken of the processor."""
        return sum(map(processes.processor_seconds, self.pids))


@contextmanager
def _running(stores: ground.Stores, number: int) -> Iterator[_Running]:
    """So many delivery processes, from when they let clients in."""
    found = [ports.free() for _ in range(number)]
    programs = []
    for place, port in enumerate(found):
        own = changed(stores.settings, live_port=port, live_metrics_port=0)
        programs.append(program(own, f"delivery-{place}"))
    supervisor = Supervisor(programs, stores.folder)
    try:
        supervisor.start()
        time.sleep(SETTLED_SECONDS)  # they have found each other, and share the feeds
        yield _Running(found, [*supervisor.pids().values()])
    finally:
        supervisor.stop()


def _measure(running: _Running, source: _Source, rate: float, seconds: float) -> Cost:
    number = len(running.pids)
    idle, _ = _taken(running, partial(_nothing, seconds), 0.0)
    a_second = idle / (seconds + SETTLED_SECONDS)
    emit_others = partial(source.emit, [f"{name}-unwatched" for name in source.names])
    skipped, updates = _taken(running, lambda: emit_others(rate, seconds), a_second)
    with _sockets(running, source, int(rate * seconds)) as came:
        together, sent = _taken(
            running, lambda: source.emit(source.names, rate, seconds), a_second
        )
        if came() != sent:
            raise RuntimeError(f"of {sent} updates {came()} came")
    return Cost(a_second / number, skipped / updates / number, together / sent)


def _nothing(seconds: float) -> int:
    time.sleep(seconds)
    return 0


def _taken(running: _Running, work: Callable[[], int], idle: float) -> tuple[float, int]:
    """Return what they took for it, above what they take idle in that time, and what it says."""
    began, before = time.perf_counter(), running.seconds()
    done = work()
    time.sleep(SETTLED_SECONDS)
    spent = running.seconds() - before
    return max(0.0, spent - idle * (time.perf_counter() - began)), done


@contextmanager
def _sockets(running: _Running, source: _Source, frames: int) -> Iterator[Callable[[], int]]:
    """A socket for each stream, at the processes in turn; what is yielded tells what came."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    wanted = [
        Wanted(running.ports[place % len(running.ports)], name, STREAM, source.token, 1)
        for place, name in enumerate(source.names)
    ]
    process = spawn.Process(target=count, args=(wanted, frames, theirs), daemon=True)
    process.start()
    ours.recv()
    found: list[int] = []

    def came() -> int:
        if not found:
            found.append(ours.recv())
        return found[0]

    try:
        yield came
    finally:
        process.join()
