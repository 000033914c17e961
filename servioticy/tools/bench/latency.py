"""PUT to WebSocket: from the client's request to the derived update's frame.

One composite, then a chain of five, at a steady rate, everything on this machine. The
clock starts before the request is written and stops when the frame has been read. The device
is on http.client: httpx would add its own time (connection.py).
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Sequence

import orjson
from websockets.sync.client import connect

from servioticy.settings import Settings
from servioticy.settings.places import reachable
from servioticy.tools.bench import ground
from servioticy.tools.bench.connection import Connection


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print p50, p90, p99 and the largest, in milliseconds, and the ratio of the chains."""
    parser = argparse.ArgumentParser("servioticy bench latency")
    parser.add_argument("--rate", type=float, default=50.0, help="updates a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="measured, a chain")
    parser.add_argument("--rounds", type=int, default=3, help="in turn: one, five, one, five ...")
    options = parser.parse_args(arguments)
    measured: dict[int, list[float]] = {1: [], 5: []}
    with ground.platform(settings) as found:
        token = ground.token(found)
        for length in measured:
            _measure(found, token, length, options.rate, 2.0)  # to warm up
        for _ in range(options.rounds):
            for length, values in measured.items():
                seconds = options.seconds / options.rounds
                values += _measure(found, token, length, options.rate, seconds)
    for length, values in measured.items():
        cuts = " ".join(f"{name} {ground.percentile(values, part):.1f}" for name, part in _PARTS)
        print(f"chain of {length}: {cuts} max {max(values):.1f} ms ({len(values)} updates)")
    ratio = ground.percentile(measured[5], 0.5) / ground.percentile(measured[1], 0.5)
    print(f"chain of 5 against 1, p50: {ratio:.2f} times")


_PARTS = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))


def _measure(
    settings: Settings, token: str, length: int, rate: float, seconds: float
) -> list[float]:
    with ground.client(settings, token) as client:
        service_object = client.create(ground.chain(length))
    device = Connection(settings, token)
    updates = max(1, int(rate * seconds))
    sent: dict[int, float] = {}
    arrived: dict[int, float] = {}
    url = f"ws://{reachable(settings.host)}:{settings.delivery.port}/{service_object}/streams"
    with connect(
        f"{url}/s{length}/live", additional_headers={"Authorization": token}, compression=None
    ) as socket:

        def listen() -> None:
            while len(arrived) < updates:
                frame = socket.recv(timeout=30)
                arrived[orjson.loads(frame)["lastUpdate"]] = time.perf_counter()

        listener = threading.Thread(target=listen)
        listener.start()
        began = time.perf_counter()
        for number in range(updates):
            pause = began + number / rate - time.perf_counter()
            if pause > 0:
                time.sleep(pause)
            sent[number] = time.perf_counter()
            device.put(service_object, "s0", number, number)
        listener.join()
    return [(arrived[number] - sent[number]) * 1000 for number in sent]
