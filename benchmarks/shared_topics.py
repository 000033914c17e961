"""What durable topics cost where several processes of the broker share the tenants.

Postgres, the broker of the log and 1, 2 and 4 processes of the broker run. Each of some tenants
has a stream, a durable subscription to it, and a client, at the processes in turn: so of most of
them one process delivers, and another one hands on. The benchmark emits updates as the pipeline
does, at a steady rate. What the processes take while nothing is emitted is taken off.

With `--together` all tenants are such that one process delivers to them, as if they were not
shared.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from benchmarks import ground
from benchmarks.delivery.emitting import STREAM, Emitted, Emitting, Running
from benchmarks.mqtt import Client
from servioticy import bootstrap
from servioticy.domain.feed_slots import SLOTS, of_tenant, slot_of
from servioticy.embedded import tcp_ports as ports
from servioticy.ports.cursors import StoredCursor, write_cursor
from servioticy.settings import Settings, changed, to_environment
from servioticy.storage.queries import queries
from servioticy.supervisor.program import Program
from servioticy.supervisor.supervisor import Supervisor

SETTLED_SECONDS = 3.0
"""After which processes have found each other, and all that was emitted has come."""
READY_SECONDS = 60.0


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print microseconds of the processor for a message, and how they are spread."""
    parser = argparse.ArgumentParser("servioticy bench shared_topics")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--tenants", type=int, default=24, help="each with a topic and a client")
    parser.add_argument("--rate", type=float, default=500.0, help="updates a second")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    parser.add_argument("--together", action="store_true", help="one process delivers to all")
    options = parser.parse_args(arguments)
    with ground.stores(settings) as stores:
        emitting = Emitting(stores.settings)
        slots = SLOTS // max(options.processes) if options.together else SLOTS
        topics = _topics(stores.settings, emitting, options.tenants, slots)
        for number in options.processes:
            before = os.getloadavg()[0]
            with _running(stores, number) as running:
                told = _measure(running, emitting, topics, options.rate, options.seconds)
            load = f"load {before:.1f}, {os.getloadavg()[0]:.1f}"
            print(f"{number} processes: {told}; {load}", flush=True)


def _topics(settings: Settings, emitting: Emitting, tenants: int, slots: int) -> list[Emitted]:
    """Return one of each of so many tenants, of those that are in the first slots."""
    made = (emitting.create(f"bench-{n}", [f"bench-{n}"])[0] for n in itertools.count())
    chosen = (each for each in made if slot_of(of_tenant(each.tenant), SLOTS) < slots)
    return [_subscribed(settings, each) for each in itertools.islice(chosen, tenants)]


def _subscribed(settings: Settings, to: Emitted) -> Emitted:
    """Return it with a durable subscription of its tenant, whose topics begin with its name."""
    database = bootstrap.connect(settings, durable=False)
    (stream,) = database.rows(
        "SELECT id FROM streams WHERE service_object = %(name)s", {"name": to.name}
    )
    values = {
        "id": to.name,
        "tenant": to.tenant,
        "stream": stream[0],
        "service_object": None,
        "group": None,
        "document": f'{{"destination": "{to.name}"}}',
        "callback": "pubsub",
        "destination": to.name,
        "now": int(time.time() * 1000),
        "most": 100,
        "cursor": write_cursor(StoredCursor()),
        "expires_at": None,
    }
    database.rows(queries("subscriptions")["subscribe"], values)
    return to


@contextmanager
def _running(stores: ground.Stores, number: int) -> Iterator[Running]:
    """So many processes of the broker, from when they share the tenants."""
    found = [ports.free() for _ in range(number)]
    programs = []
    for port in found:
        own = changed(stores.settings, mqtt_port=port, mqtt_metrics_port=0)
        command = [sys.executable, "-P", "-m", "broker"]
        ready = partial(ports.answers, "127.0.0.1", port)
        programs.append(
            Program(
                f"broker-{port}", command, to_environment(own), ready, ready_seconds=READY_SECONDS
            )
        )
    supervisor = Supervisor(programs, stores.folder)
    try:
        supervisor.start()
        time.sleep(SETTLED_SECONDS)
        yield Running(found, [*supervisor.pids().values()])
    finally:
        supervisor.stop()


def _measure(
    running: Running, emitting: Emitting, topics: Sequence[Emitted], rate: float, seconds: float
) -> str:
    idle = _taken(running, lambda: time.sleep(seconds))
    with _clients(running, topics) as came:
        time.sleep(SETTLED_SECONDS)
        before = came()
        taken = _taken(running, lambda: emitting.emit(topics, rate, seconds))
        messages = came() - before
    if messages != int(rate * seconds):
        raise RuntimeError(f"of {int(rate * seconds)} updates {messages} came")
    each = [max(0.0, after - none) / messages for after, none in zip(taken, idle, strict=True)]
    total = sum(each)
    return (
        f"{1e6 * total:.0f} µs a message at all together, {max(each) / total:.0%} at the busiest"
    )


def _taken(running: Running, work: Callable[[], object]) -> list[float]:
    """Return what each process takes for it."""
    before = running.seconds()
    work()
    time.sleep(SETTLED_SECONDS)
    return [after - was for was, after in zip(before, running.seconds(), strict=True)]


@contextmanager
def _clients(running: Running, topics: Sequence[Emitted]) -> Iterator[Callable[[], int]]:
    """A client for each topic; what is yielded tells how many messages have come."""
    clients, counts = [], [0] * len(topics)

    def listen(place: int, client: Client) -> None:
        try:
            for _ in client.packets:
                counts[place] += 1
        except (OSError, RuntimeError):
            return  # it was closed

    for place, each in enumerate(topics):
        port = running.ports[place % len(running.ports)]
        client = Client(("127.0.0.1", port), each.token, each.name)
        client.subscribe(f"{each.name}/{each.name}/streams/{STREAM}/updates")
        threading.Thread(target=listen, args=(place, client), daemon=True).start()
        clients.append(client)
    try:
        yield lambda: sum(counts)
    finally:
        for client in clients:
            client.close()
