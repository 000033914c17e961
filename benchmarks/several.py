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

from benchmarks import ground
from benchmarks.delivery import program
from benchmarks.delivery.emitting import STREAM, Emitting, Running
from benchmarks.delivery.listeners import Wanted, count
from servioticy.embedded import tcp_ports as ports
from servioticy.settings import Settings, changed
from servioticy.supervisor.supervisor import Supervisor

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
        self.emitting = Emitting(settings)
        names = [f"bench-{number}" for number in range(streams)]
        self.watched = self.emitting.create("bench", names)
        self.unwatched = [each._replace(name=f"{each.name}-unwatched") for each in self.watched]


@contextmanager
def _running(stores: ground.Stores, number: int) -> Iterator[Running]:
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
        yield Running(found, [*supervisor.pids().values()])
    finally:
        supervisor.stop()


def _measure(running: Running, source: _Source, rate: float, seconds: float) -> Cost:
    number = len(running.pids)
    idle, _ = _taken(running, partial(_nothing, seconds), 0.0)
    a_second = idle / (seconds + SETTLED_SECONDS)
    emit = source.emitting.emit
    skipped, updates = _taken(running, lambda: emit(source.unwatched, rate, seconds), a_second)
    with _sockets(running, source, int(rate * seconds)) as came:
        together, sent = _taken(running, lambda: emit(source.watched, rate, seconds), a_second)
        if came() != sent:
            raise RuntimeError(f"of {sent} updates {came()} came")
    return Cost(a_second / number, skipped / updates / number, together / sent)


def _nothing(seconds: float) -> int:
    time.sleep(seconds)
    return 0


def _taken(running: Running, work: Callable[[], int], idle: float) -> tuple[float, int]:
    """Return what they took for it, above what they take idle in that time, and what it says."""
    began, before = time.perf_counter(), sum(running.seconds())
    done = work()
    time.sleep(SETTLED_SECONDS)
    spent = sum(running.seconds()) - before
    return max(0.0, spent - idle * (time.perf_counter() - began)), done


@contextmanager
def _sockets(running: Running, source: _Source, frames: int) -> Iterator[Callable[[], int]]:
    """A socket for each stream, at the processes in turn; what is yielded tells what came."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    wanted = [
        Wanted(running.ports[place % len(running.ports)], each.name, STREAM, each.token, 1)
        for place, each in enumerate(source.watched)
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
