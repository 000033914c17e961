"""How long the first atom of a workflow takes after idleness, and what idle tenants cost.

The program `functions` on a Postgres of its own, with so many tenants that have a workflow each
and nothing to do: memory of the program with what it keeps at hand, then one atom at a time, each
after what worked on the last one has ended. With `--platform` it is a whole platform, and the
first update, too (`idle_tenants.py`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import orjson

from benchmarks import ground, idle_tenants, processes
from functions.__main__ import READY_FILE
from servioticy.domain.workflows.reading import parse_workflow
from servioticy.settings import Settings, changed, to_environment
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.database import Database

DOCUMENT = {
    "source": {"http": {}},
    "procedures": {"p": {"code": "function(a) { return a; }"}},
    "links": [["source", "p"], ["p", "sink"]],
    "sink": {"collect": {}},
}
LOOK_SECONDS = 0.002


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print a line for each number of tenants, with and without a spare process."""
    parser = argparse.ArgumentParser("servioticy bench idle")
    parser.add_argument("--tenants", default="1,1000", help="how many, one run each")
    parser.add_argument("--rounds", type=int, default=10, help="atoms, one after the other")
    parser.add_argument("--pause", type=float, default=5.0, help="seconds before each")
    parser.add_argument(
        "--platform",
        type=int,
        default=0,
        metavar="TENANTS",
        help="a whole platform in place of `functions`, with so many that have been at work",
    )
    parser.add_argument("--settle", type=float, default=90.0, help="seconds until all is idle")
    options = parser.parse_args(arguments)
    if options.platform:
        idle_tenants.measure(settings, DOCUMENT, options.platform, options.rounds, options.settle)
        return
    print(f"load {os.getloadavg()[0]:.1f} at the start")
    print(f"{'tenants':>8} {'spare':>6} {'idle MB':>8} {'p50 ms':>8} {'most ms':>8}")
    with ground.stores(settings) as stores:
        owner = Database(stores.settings.store.dsn)
        there = 0
        for tenants in map(int, options.tenants.split(",")):
            _add(owner, there, tenants)
            there = max(there, tenants)
            for spare in (False, True):
                with _program(stores, spare) as pid:
                    time.sleep(options.pause)
                    memory = sum(map(processes.memory_megabytes, processes.tree(pid)))
                    found = [_first(owner, options.pause) for _ in range(options.rounds)]
                print(
                    f"{tenants:>8} {'yes' if spare else 'no':>6} {memory:>8.1f}"
                    f" {ground.percentile(found, 0.5):>8.0f} {max(found):>8.0f}",
                    flush=True,
                )
        owner.close()


def _add(owner: Database, there: int, tenants: int) -> None:
    owner.rows(
        "INSERT INTO tenants (id, name) OVERRIDING SYSTEM VALUE"
        " SELECT n, 'bench ' || n FROM generate_series(%(first)s, %(last)s) AS n;"
        "INSERT INTO workflows (id, tenant_id, created_at, updated_at)"
        " SELECT 'w' || n, n, 0, 0 FROM generate_series(%(first)s, %(last)s) AS n;"
        "INSERT INTO workflow_versions (workflow, version, tenant_id, content, created_at)"
        " SELECT 'w' || n, 1, n, %(text)s, 0 FROM generate_series(%(first)s, %(last)s) AS n",
        {"first": there + 1, "last": tenants, "text": orjson.dumps(DOCUMENT).decode()},
    )


@contextmanager
def _program(stores: ground.Stores, spare: bool) -> Iterator[int]:
    """`functions`, from when it waits."""
    ready = Path(stores.settings.data_path) / "functions.ready"
    ready.unlink(missing_ok=True)
    own = changed(
        stores.settings,
        functions_metrics_port=0,
        functions_idle_seconds=0.0,
        functions_spare=spare,
    )
    environment = {**os.environ, **to_environment(own), READY_FILE: str(ready)}
    program = subprocess.Popen([sys.executable, "-P", "-m", "functions"], env=environment)
    try:
        while not ready.exists():
            time.sleep(LOOK_SECONDS)
        yield program.pid
    finally:
        program.terminate()
        program.wait()


def _first(owner: Database, pause: float) -> float:
    """Return how many milliseconds an atom takes to its sink that comes after a pause."""
    time.sleep(pause)
    read, now = parse_workflow(DOCUMENT), int(time.time() * 1000)
    owner.rows("DELETE FROM collected_atoms")
    began = time.monotonic()
    PostgresAtoms(owner).put(1, "w1", 1, read, [(b"{}", now)], now)
    while not owner.rows("SELECT 1 FROM collected_atoms"):
        time.sleep(LOOK_SECONDS)
    return 1000 * (time.monotonic() - began)
