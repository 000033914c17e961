"""Batches: how many updates a second are accepted in each form, on one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import orjson

from benchmarks import ground
from benchmarks.processes import costs
from benchmarks.rest.load import closed_loop, request
from benchmarks.rest.puts import DOCUMENT
from benchmarks.rest.served import Served

ITEMS = 1_000
CONNECTIONS = 4
DEVICES = 20
Body = Callable[[int], bytes]


def run(served: Served, seconds: float) -> None:
    """Print the updates a second of each form, for one stream and for many."""
    with ground.client(served.settings, served.token) as client:
        ids = [client.create(DOCUMENT) for _ in range(DEVICES)]
    one, many = f"/{ids[0]}/streams/s/updates", "/updates"
    forms: list[tuple[str, str, str, Body]] = [
        ("JSON", one, "application/json", lambda n: orjson.dumps(_updates(n))),
        ("NDJSON", one, "application/x-ndjson", _lines),
        ("CSV", one, "text/csv", _rows),
        ("SenML", one, "application/senml+json", _pack),
        (f"JSON of {DEVICES} streams", many, "application/json", lambda n: _named(n, ids)),
    ]
    for name, path, content_type, body in forms:
        # Made beforehand: to make them costs as much as to read them.
        requests = [request("POST", path, served.token, body(n), content_type) for n in range(20)]
        closed_loop(served.settings, CONNECTIONS, 0.5, partial(_turn, requests), 202)
        before = served.used()
        measured = closed_loop(
            served.settings, CONNECTIONS, seconds, partial(_turn, requests), 202
        )
        updates = ITEMS * len(measured.seconds)
        p50 = 1e3 * ground.percentile(measured.seconds, 0.5)
        print(f"{name}: {updates / measured.lasted:,.0f} updates/s, p50 {p50:.0f} ms a batch")
        print(f"  each {costs(before, served.used(), updates)}", flush=True)


def _turn(requests: Sequence[bytes], number: int) -> bytes:
    return requests[number % len(requests)]


def _updates(batch: int) -> list[dict[str, object]]:
    first = batch * ITEMS
    return [
        {"channels": {"v": {"current-value": n / 10}}, "lastUpdate": n}
        for n in range(first, first + ITEMS)
    ]


def _lines(batch: int) -> bytes:
    return b"\n".join(map(orjson.dumps, _updates(batch)))


def _rows(batch: int) -> bytes:
    first = batch * ITEMS
    rows = "\n".join(f"{n},{n / 10}" for n in range(first, first + ITEMS))
    return f"lastUpdate,v\n{rows}".encode()


def _pack(batch: int) -> bytes:
    first = batch * ITEMS
    records = [{"n": "v", "t": n, "v": n / 10} for n in range(first, first + ITEMS)]
    return orjson.dumps([{"bt": 1.4e9}, *records])


def _named(batch: int, ids: list[str]) -> bytes:
    return orjson.dumps(
        [
            {"serviceObject": ids[n % DEVICES], "stream": "s", "update": each}
            for n, each in enumerate(_updates(batch))
        ]
    )
