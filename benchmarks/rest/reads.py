"""Reads of a long history: pages, aggregates, last updates, and exports with their memory."""

from __future__ import annotations

import threading
import time
from functools import partial

import orjson

from benchmarks import ground
from benchmarks.processes import costs
from benchmarks.rest.load import closed_loop, request
from benchmarks.rest.puts import DOCUMENT
from benchmarks.rest.served import Served
from servioticy import bootstrap
from servioticy.storage.database import Database

UPDATES = 500_000
CONNECTIONS = 8
FORMATS = ("ndjson", "csv", "arrow", "parquet")
STORE = """
INSERT INTO updates
SELECT streams.tenant_id, stored_as, n,
       format('{"channels":{"v":{"current-value":%%s}},"lastUpdate":%%s}', n / 10.0, n)::json,
       1, 0, 0, 0
  FROM streams, generate_series(1, %(updates)s) AS n
 WHERE service_object = %(id)s
"""

PROGRESS = "INSERT INTO progress VALUES (0, %(end)s, %(end)s)"


def run(served: Served, seconds: float) -> None:
    """Print the reads a second of each kind, and the megabytes a second of exports."""
    with ground.client(served.settings, served.token) as client:
        id_ = client.create(DOCUMENT)
    database = Database(served.settings.store.dsn)
    database.rows(STORE, {"id": id_, "updates": UPDATES})
    database.rows("ANALYZE updates")
    # As if a pipeline had stored what is in the log: no read has to wait.
    database.rows(PROGRESS, {"end": bootstrap.log_ends(served.settings).end_offset(0)})
    database.close()
    time.sleep(1.0)  # its server process has to be gone before the first count
    stream = f"/{id_}/streams/s"
    one = orjson.dumps({"streams": [{"serviceObject": id_, "stream": "s"}] * 100})
    asked = {
        "last update": request("GET", f"{stream}/lastUpdate", served.token),
        "a page of 100": request("GET", f"{stream}/updates?from=250000", served.token),
        "a page of 1,000, newest first": request(
            "GET", f"{stream}/updates?limit=1000&order=desc", served.token
        ),
        "100 buckets of 1,000": request(
            "GET", f"{stream}/aggregates?channel=v&bucket=1000&from=100000&to=199999", served.token
        ),
        "100 last updates": request("POST", "/lastUpdates", served.token, one),
    }
    for name, content in asked.items():
        before = served.used()
        measured = closed_loop(served.settings, CONNECTIONS, seconds / 2, partial(_same, content))
        count = len(measured.seconds)
        p50, p99 = (1e3 * ground.percentile(measured.seconds, part) for part in (0.5, 0.99))
        print(f"{name}: {count / measured.lasted:,.0f}/s, p50 {p50:.1f} p99 {p99:.1f} ms")
        print(f"  each {costs(before, served.used(), count)}", flush=True)
    for name in FORMATS:
        _export(served, f"{stream}/export?format={name}", name)


def _same(content: bytes, _number: int) -> bytes:
    return content


def _export(served: Served, path: str, name: str) -> None:
    content, ended, most = request("GET", path, served.token), threading.Event(), [0.0]
    closed_loop(
        served.settings, 1, 0.0, partial(_same, request("GET", f"{path}&to=9", served.token))
    )
    memory = served.memory()

    def watch() -> None:
        while not ended.wait(0.05):
            most[0] = max(most[0], served.memory())

    watching = threading.Thread(target=watch)
    watching.start()
    before, began = served.used(), time.perf_counter()
    measured = closed_loop(served.settings, 1, 0.0, partial(_same, content))
    took = time.perf_counter() - began
    ended.set()
    watching.join()
    megabytes = measured.bytes / 1e6
    print(
        f"export of {UPDATES:,} as {name}: {megabytes / took:.1f} MB/s, {UPDATES / took:,.0f} "
        f"updates/s, {megabytes:.1f} MB; the API has {memory:.0f} MB before, {most[0]:.0f} at most"
    )
    print(f"  each update {costs(before, served.used(), UPDATES)}", flush=True)
