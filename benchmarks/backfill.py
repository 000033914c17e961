"""Updates a second of a backfill, beside the closed loop's, and what others notice of it.

In one run: the closed loop (`bench loop`), one round; innocent tenants alone, which send at a
steady pace and watch what is derived; and the same beside a backfill of one composite over stored
history, from when it is ordered until its rows have taken their place.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from benchmarks import ground
from benchmarks.attacks.arrivals import Waits, waits
from benchmarks.attacks.attacker import Place
from benchmarks.attacks.innocent import Innocent
from benchmarks.loop import Loop
from servioticy.client.rest import Rest
from servioticy.settings import Settings
from servioticy.storage.database import Database

PERIOD_SECONDS = 0.05
WARM_SECONDS = 5.0
LAST_SECONDS = 30.0
"""What is on its way in the end has so long."""
POLL_SECONDS = 0.2
FILL = """
INSERT INTO updates (tenant_id, stream_id, "timestamp", document, version,
                     log_partition, log_offset, log_position)
SELECT streams.tenant_id, streams.id, n, json_build_object(
           'channels', json_build_object('v', json_build_object('current-value', n %% 1000)),
           'lastUpdate', n), 1, 0, 0, 0
  FROM streams, generate_series(%(first)s, %(last)s) AS n
 WHERE service_object = %(id)s
   AND name = 's0'
"""
"""History, as if it had been sent before the log's first record."""
ROWS_AT_ONCE = 50_000


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print the loop's rate, the backfill's, and the innocents' latency without it and beside."""
    parser = argparse.ArgumentParser("servioticy bench backfill")
    parser.add_argument("--updates", type=int, default=200_000, help="that are stored, and read")
    parser.add_argument("--seconds", type=float, default=10.0, help="of the phases without it")
    parser.add_argument("--connections", type=int, default=32, help="of the closed loop")
    parser.add_argument("--innocents", type=int, default=3, help="tenants, 20 updates a second")
    options = parser.parse_args(arguments)
    with ground.platform(settings) as found:
        print(f"load {_load()}", flush=True)
        with ExitStack() as stack:
            loop = Loop.of_platform(found, options.connections, stack)
            loop.warm()
            round_ = loop.round(options.seconds)
        print(
            f"closed loop: {round_.arrived_a_second:,.0f} updates/s at their sockets", flush=True
        )
        token = ground.token(found)
        with ground.client(found, token) as client:
            composite = _history(found, client, options.updates)
            innocents = [
                Innocent(
                    Place(found, ground.token(found, f"innocent {number}")),
                    *(PERIOD_SECONDS, 1),
                    only_sends=True,
                )
                for number in range(options.innocents)
            ]
            for each in innocents:
                each.start()
            time.sleep(WARM_SECONDS)
            times = [time.perf_counter()]
            time.sleep(options.seconds)
            times.append(time.perf_counter())
            job = _filled(client, composite, options.updates)
            times.append(time.perf_counter())
        missing = _come_to_rest(innocents)
        alone, beside = (_waits(innocents, *times[at : at + 2]) for at in (0, 1))
        took = times[2] - times[1]
        print(f"backfill: {job['done']:,} updates read and as many made in {took:.1f} s")
        rate = job["done"] / took
        print(f"  {rate:,.0f} updates/s, {rate / round_.arrived_a_second:.1f} times the loop's")
        print(f"innocents alone:  {_line(alone)}")
        print(f"innocents beside: {_line(beside)}; {missing} lost")
        print(f"load {_load()}", flush=True)


def _history(settings: Settings, client: Rest, updates: int) -> str:
    """Return a Service Object whose stream has so many updates, and a new composite over it."""
    composite = client.create(ground.chain(0))
    database = Database(settings.store.dsn)
    try:
        for first in range(1, updates + 1, ROWS_AT_ONCE):
            last = min(updates, first + ROWS_AT_ONCE - 1)
            database.rows(FILL, {"id": composite, "first": first, "last": last})
        database.rows("ANALYZE updates")
    finally:
        database.close()
    client.change(composite, ground.chain(1))
    return composite


def _filled(client: Rest, composite: str, updates: int) -> dict[str, Any]:
    """Return the job when it is done. Raises RuntimeError where it fails."""
    job = client.backfill(composite, "s1", 1, updates + 1)
    while True:
        told = client.job(job)
        if told["state"] == "done":
            return told
        if told["state"] == "failed":
            raise RuntimeError(told["failures"][0]["message"])
        time.sleep(POLL_SECONDS)


def _come_to_rest(innocents: Sequence[Innocent]) -> int:
    """Return how many updates have not come out once there was time for all."""
    for each in innocents:
        each.stop_sending()
    end = time.perf_counter() + LAST_SECONDS
    while (left := sum(each.missing() for each in innocents)) and time.perf_counter() < end:
        time.sleep(POLL_SECONDS)
    return left


def _waits(innocents: Sequence[Innocent], begin: float, end: float) -> Waits:
    sent = [replace(e) for each in innocents for e in each.sent if begin <= e.due < end]
    return waits(sent, time.perf_counter())


def _line(found: Waits) -> str:
    p50, p99, longest = (1000 * each for each in (found.p50, found.p99, found.longest))
    return f"p50 {p50:.1f} p99 {p99:.1f} longest {longest:.1f} ms"


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"
