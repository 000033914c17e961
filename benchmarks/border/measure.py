"""A public stream that is sent to all the time, and so many tenants that read it."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

import orjson

from benchmarks.attacks import running
from benchmarks.attacks.arrivals import Waits, waits
from benchmarks.attacks.attacker import Place
from benchmarks.attacks.innocent import Innocent
from benchmarks.border.emitted import Faults, emitted, faults
from benchmarks.border.watcher import Watcher
from benchmarks.connection import Connection
from servioticy.bootstrap import connect
from servioticy.domain.model import StreamRef
from servioticy.errors import Rejected
from servioticy.settings import Settings
from servioticy.storage.roles import Role
from servioticy.storage.tenants import PostgresTenants

WATCHED = 10
"""Of the readers, over a socket each."""
MAKERS = 4
WARM_SECONDS = 5.0
MORE_WARM_SECONDS = 600.0
"""In which each reader has got something."""
STUCK_SECONDS = 45.0
"""While nothing more comes of what is missing: then nothing does."""
TICK_SECONDS = 0.5
COMPUTED = "c"
HOW_FAR = """
SELECT count(*) FILTER (WHERE (last ->> 'timestamp')::bigint >= %(last)s), coalesce(sum(count), 0)
  FROM verdicts
 WHERE verdict = 'emitted'
   AND tenant_id = ANY(%(tenants)s)
"""


@dataclass(frozen=True, slots=True)
class Beside:
    """How the provider fared beside its readers, and what they got."""

    provider: Waits
    """from when an update was due until it came out at the provider's own socket"""
    readers: Waits
    """the same at the sockets of some of the readers"""
    complete_seconds: float | None
    """from the last update until every reader had everything; None: not in time"""
    faults: Faults
    """by what was emitted"""
    used: Mapping[str, float]
    """processor seconds an update by program, until every reader had everything"""


@dataclass(frozen=True, slots=True)
class _Reader:
    tenant: int
    token: str
    stream: StreamRef


def measure(
    settings: Settings, number: int, period: float, seconds: float, within: float
) -> Beside:
    """Let a new provider send for so many seconds, an update a `period`, beside new readers.

    Each of them may have the last update so many seconds later.
    """
    sys.stderr.write(f"{number} readers\n")
    made = _tenants(settings, "provider", 1)
    provider = Innocent(Place(settings, made[0][1]), period, 1, only_sends=True)
    readers = _readers(settings, provider.service_object, number)
    with ExitStack() as stack:
        watchers = [
            stack.enter_context(Watcher.of(settings, each.token, each.stream))
            for each in readers[:WATCHED]
        ]
        provider.start()
        time.sleep(WARM_SECONDS)
        _all_have(settings, readers, 1, MORE_WARM_SECONDS)
        first, began, before = len(provider.sent) + 1, time.perf_counter(), running.used(settings)
        time.sleep(seconds)
        ended = time.perf_counter()
        provider.stop_sending()
        last = len(provider.sent)
        complete = _all_have(settings, readers, last, within)
        after = running.used(settings)
    measured = [replace(each) for each in provider.sent if began <= each.due < ended]
    came = [
        replace(sent, arrived=watcher.arrived.get(timestamp))
        for watcher in watchers
        for timestamp, sent in enumerate(provider.sent, 1)
        if began <= sent.due < ended
    ]
    now, updates = time.perf_counter(), max(1, last - first + 1)
    expected = range(first, last + 1)
    return Beside(
        waits(measured, now),
        waits(came, now),
        complete,
        faults(emitted(settings, [each.stream for each in readers]), expected),
        {name: (total - before.get(name, 0.0)) / updates for name, total in after.items()},
    )


def reading(service_object: str) -> dict[str, Any]:
    """Return a document with one composite over a device's stream `s0`."""
    code = 'function(g){return g.channels.v["current-value"]}'
    return {
        "version": "0.2.0",
        "groups": {"g": {"soIds": [service_object], "stream": "s0"}},
        "streams": {COMPUTED: {"channels": {"v": {"type": "number", "current-value": code}}}},
    }


def _readers(settings: Settings, service_object: str, number: int) -> list[_Reader]:
    """Make so many tenants, each with a composite over the stream."""
    wanted = orjson.dumps(reading(service_object))

    def make(made: tuple[int, str]) -> _Reader:
        tenant, token = made
        connection = Connection(settings, token)
        status, body = connection.request("POST", "/", wanted)
        connection.close()
        if status != HTTPStatus.CREATED:
            raise Rejected(f"a reader was not made: {status} {body.decode(errors='replace')}")
        return _Reader(tenant, token, StreamRef(orjson.loads(body)["id"], COMPUTED))

    with ThreadPoolExecutor(MAKERS) as makers:
        return list(makers.map(make, _tenants(settings, "reader", number)))


def _tenants(settings: Settings, name: str, number: int) -> list[tuple[int, str]]:
    """Make so many new tenants; of each its number and a token."""
    database = connect(settings, Role.API)
    try:
        tenants = PostgresTenants(database)
        begin = time.time_ns()
        tokens = [tenants.create_tenant(f"{name} {begin} {each}") for each in range(number)]
        return [(tenants.tenant_of(each) or 0, each) for each in tokens]
    finally:
        database.close()


def _all_have(
    settings: Settings, readers: Sequence[_Reader], last: int, within: float
) -> float | None:
    """Wait until each has computed an update that is not older; how many seconds that took.

    None where it does not come to that in time, or nothing goes on any more.
    """
    values = {"tenants": [each.tenant for each in readers], "last": last}
    began = moved = time.perf_counter()
    known = -1
    database = connect(settings, Role.PIPELINE)
    try:
        while True:
            ((have, computed),) = database.rows(HOW_FAR, values)
            now = time.perf_counter()
            if have >= len(readers):
                return now - began
            if computed != known:
                known, moved = computed, now
            if now - began > within or now - moved > STUCK_SECONDS:
                return None
            time.sleep(TICK_SECONDS)
    finally:
        database.close()
