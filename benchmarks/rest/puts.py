"""PUTs: how many a second over 1, 32 and 256 connections, and how long one takes at 50/s."""

from __future__ import annotations

from benchmarks import ground
from benchmarks.processes import costs
from benchmarks.rest.load import Measured, closed_loop, paced, request
from benchmarks.rest.served import Served

DOCUMENT = {"streams": {"s": {"channels": {"v": {"type": "number"}}}}}
DEVICES = 20
CONNECTIONS = (1, 32, 256)
RATE = 50.0


def run(served: Served, seconds: float) -> None:
    """Print what comes of each load."""
    with ground.client(served.settings, served.token) as client:
        ids = [client.create(DOCUMENT) for _ in range(DEVICES)]

    def put(number: int) -> bytes:
        body = b'{"channels":{"v":{"current-value":%d}},"lastUpdate":%d}' % (number, number)
        return request("PUT", f"/{ids[number % DEVICES]}/streams/s", served.token, body)

    closed_loop(served.settings, 8, 1.0, put, 202)
    before = served.used()
    _show(f"PUT at {RATE:.0f}/s", paced(served.settings, RATE, seconds, put, 202), served, before)
    for count in CONNECTIONS:
        before = served.used()
        measured = closed_loop(served.settings, count, seconds, put, 202)
        _show(f"PUT over {count} connections", measured, served, before)


def _show(what: str, measured: Measured, served: Served, before: dict[str, float]) -> None:
    p50, p99 = (1e3 * ground.percentile(measured.seconds, part) for part in (0.5, 0.99))
    count = len(measured.seconds)
    print(f"{what}: {count / measured.lasted:,.0f}/s, p50 {p50:.2f} p99 {p99:.1f} ms")
    print(f"  each {costs(before, served.used(), count)}", flush=True)
