"""What idle tenants cost all programs of a platform, and how soon the first update is computed.

So many tenants come, each with a device of ten composite streams and a workflow; each sends an
update and an atom, and is silent from then on. When what was begun for them has ended, processes
and memory of each program are compared with before they came; then one tenant after the other,
each the first time since, sends an update, and an atom.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson
from websockets.sync.client import connect

from benchmarks import ground, processes
from benchmarks.connection import Connection
from command.platform import Platform
from servioticy.settings import Settings, changed
from servioticy.settings.places import reachable
from servioticy.storage.database import Database
from servioticy.storage.tenants import PostgresTenants

COMPOSITES = 10
CODE = "function(s0){return s0.channels.v['current-value']+%d}"
DEVICE: dict[str, Any] = {
    "streams": {
        "s0": {"channels": {"v": {"type": "number"}}},
        **{
            f"c{n}": {"channels": {"v": {"type": "number", "current-value": CODE % n}}}
            for n in range(COMPOSITES)
        },
    }
}
LOOK_SECONDS = 0.002
PAUSE_SECONDS = 10.0
"""Before each atom: in so long what worked on the last one has ended, and the next is ready."""
AT_ONCE = 4
"""Tenants that come at a time."""
FORGETS = 3
"""Parts of the time until all is idle, of which one is until programs forget who is silent: so it
is not ten minutes that one has to wait."""
WARM = 100
"""Tenants that come before, more than may have processes of the sandbox at once: what programs
load for the first ones, and keep ready for so many, is nobody's."""


class Tenant(NamedTuple):
    """Whose, and what is his."""

    token: str
    service_object: str
    workflow: str


class Way(NamedTuple):
    """Of an atom, in milliseconds from its POST."""

    accepted: float
    collected: float


class Cost(NamedTuple):
    """Of a program with all below it."""

    processes: int
    connections: int
    """To Postgres."""
    memory: processes.Memory
    kinds: Mapping[str, float]
    """Megabytes of its own by what runs in the process: a Java's heap grows with whoever works."""


def measure(
    settings: Settings, document: dict[str, Any], tenants: int, rounds: int, settle: float
) -> None:
    """Print a line for each program, and one for updates and atoms."""
    print(f"load {os.getloadavg()[0]:.1f} at the start", flush=True)
    quickly = changed(settings, functions_idle_seconds=1.0, forget_seconds=settle / FORGETS)
    with ground.folder(quickly) as own:
        platform = Platform(own)
        try:
            platform.supervisor.start()
            found = platform.settings
            owner = Database(found.store.dsn)
            _all_come(found, owner, document, "warm", min(WARM, tenants))
            time.sleep(settle)
            before = _costs(platform)
            idle = _all_come(found, owner, document, "idle", tenants)
            busy = _costs(platform)
            time.sleep(settle)
            _tell(before, busy, _costs(platform))
            chosen = idle[:: max(1, len(idle) // rounds)][:rounds]
            _tell_times("update", [_first_update(found, each) for each in chosen])
            atoms = [
                _first_atom(found, owner, each, min(settle, PAUSE_SECONDS)) for each in chosen
            ]
            _tell_times("atom", [each.collected for each in atoms])
            _tell_times("answer to one that brings an atom", [each.accepted for each in atoms])
            owner.close()
        finally:
            platform.close()
    print(f"load {os.getloadavg()[0]:.1f} at the end")


def _all_come(
    settings: Settings, owner: Database, document: dict[str, Any], name: str, count: int
) -> list[Tenant]:
    """Return so many new tenants, of whom all that they have sent has been worked on."""
    names = [f"{name} {number}" for number in range(count)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda each: _comes(settings, owner, document, each), names))
    for each in found:
        while not _collected(owner, each.workflow):
            time.sleep(LOOK_SECONDS)
    return found


def _comes(settings: Settings, owner: Database, document: dict[str, Any], name: str) -> Tenant:
    token = PostgresTenants(owner).create_tenant(name)
    connection = Connection(settings, token)
    service_object, workflow = (
        orjson.loads(_asked(connection, path, body))["id"]
        for path, body in (("/", DEVICE), ("/workflows", document))
    )
    connection.put(service_object, "s0", 1.0, 1)
    _asked(connection, f"/workflows/{workflow}/atoms", {"atoms": [{"n": 1}]})
    connection.close()
    owner.close()  # this thread's
    return Tenant(token, service_object, workflow)


def _asked(connection: Connection, path: str, body: object) -> bytes:
    status, answer = connection.request("POST", path, orjson.dumps(body))
    if status not in (201, 202):
        raise RuntimeError(f"POST {path}: {status} {answer.decode(errors='replace')}")
    return answer


def _collected(owner: Database, workflow: str) -> int:
    text = "SELECT count(*) FROM collected_atoms WHERE workflow = %(workflow)s"
    return int(owner.rows(text, {"workflow": workflow})[0][0])


def _costs(platform: Platform) -> dict[str, Cost]:
    port = urlsplit(platform.settings.store.dsn).port or 0
    return {name: _cost(pid, port) for name, pid in platform.supervisor.pids().items()}


def _cost(pid: int, port: int) -> Cost:
    every = processes.tree(pid)
    memory = [processes.memory(each) for each in every]
    asked = sum(processes.connections(each, port) for each in every)
    own, shared = (sum(each) for each in zip(*memory, strict=True))
    kinds: defaultdict[str, float] = defaultdict(float)
    for each, (mine, _shared) in zip(every, memory, strict=True):
        first, *_rest = processes.command(each) or ("?",)
        kinds[Path(first.partition(":")[0]).name] += mine
    return Cost(len(every), asked, processes.Memory(own, shared), kinds)


def _tell(before: dict[str, Cost], busy: dict[str, Cost], after: dict[str, Cost]) -> None:
    print(
        f"{'program':>10} {'processes before':>16} {'busy':>6} {'idle':>6}"
        f" {'connections before':>18} {'busy':>6} {'idle':>6} {'MB more':>8} {'shared':>8}"
    )
    for name, own in after.items():
        past, most = before[name], busy[name]
        print(
            f"{name:>10} {past.processes:>16} {most.processes:>6} {own.processes:>6}"
            f" {past.connections:>18} {most.connections:>6} {own.connections:>6}"
            f" {own.memory.own - past.memory.own:>8.1f}"
            f" {own.memory.shared - past.memory.shared:>8.1f}"
        )
        if len(own.kinds) > 1:  # of what a program has, a Java's heap grows with whoever works
            parts = {kind: size - past.kinds.get(kind, 0.0) for kind, size in own.kinds.items()}
            print(" " * 11 + ", ".join(f"{kind} {more:.1f}" for kind, more in parts.items()))
    (old, old_shared), (new, new_shared) = (
        (sum(each.memory.own for each in costs), sum(each.memory.shared for each in costs))
        for costs in (before.values(), after.values())
    )
    print(
        f"all: {old:.0f} MB before, {new - old:.1f} MB more; of the buffers that Postgres shares"
        f" {old_shared:.0f} MB were filled before, and {new_shared - old_shared:.1f} MB more",
        flush=True,
    )


def _first_update(settings: Settings, tenant: Tenant) -> float:
    """Return the milliseconds from a PUT to the frame of a composite stream."""
    place = f"{reachable(settings.host)}:{settings.delivery.port}"
    url = f"ws://{place}/{tenant.service_object}/streams/c{COMPOSITES - 1}/live"
    headers = {"Authorization": tenant.token}
    with connect(url, additional_headers=headers, compression=None) as socket:
        device = Connection(settings, tenant.token)
        began = time.perf_counter()
        device.put(tenant.service_object, "s0", 2.0, 2)
        while orjson.loads(socket.recv(timeout=60))["lastUpdate"] < 2:
            pass
        device.close()
        return 1000 * (time.perf_counter() - began)


def _first_atom(settings: Settings, owner: Database, tenant: Tenant, pause: float) -> Way:
    """Return when a POST was answered, and when its atom stood among the results."""
    time.sleep(pause)
    connection = Connection(settings, tenant.token)
    before = _collected(owner, tenant.workflow)
    began = time.perf_counter()
    _asked(connection, f"/workflows/{tenant.workflow}/atoms", {"atoms": [{"n": 2}]})
    accepted = 1000 * (time.perf_counter() - began)
    while _collected(owner, tenant.workflow) == before:
        time.sleep(LOOK_SECONDS)
    connection.close()
    return Way(accepted, 1000 * (time.perf_counter() - began))


def _tell_times(what: str, found: Sequence[float]) -> None:
    cuts = ", ".join(f"p{cut * 100:g} {ground.percentile(found, cut):.0f}" for cut in (0.5, 0.99))
    print(f"first {what} after idleness: {cuts} ms of {len(found)}", flush=True)
