"""PUT to WebSocket: from the client's request to the derived update's frame.

One composite, then a chain of five, at a steady rate, everything on this machine. The
clock starts before the request is written and stops when the frame has been read. The device
is on http.client: httpx would add its own time (connection.py).
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson
from websockets.sync.client import connect

from benchmarks import ground, hops
from benchmarks.connection import Connection
from servioticy.domain.model import StreamRef
from servioticy.settings import Settings
from servioticy.settings.places import reachable


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print p50, p90, p99 and the largest, in milliseconds, and the ratio of the chains."""
    parser = argparse.ArgumentParser("servioticy bench latency")
    parser.add_argument("--rate", type=float, default=50.0, help="updates a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="measured, a chain")
    parser.add_argument("--rounds", type=int, default=3, help="in turn: one, five, one, five ...")
    parser.add_argument("--hops", action="store_true", help="tell where the time goes, too")
    options = parser.parse_args(arguments)
    measured: dict[int, list[float]] = {1: [], 5: []}
    parts: dict[int, dict[str, list[float]]] = {1: {}, 5: {}}
    with ground.platform(settings) as found:
        token = ground.token(found)
        for length in measured:
            _measure(found, token, length, options.rate, 2.0)  # to warm up
        for _ in range(options.rounds):
            for length, values in measured.items():
                seconds = options.seconds / options.rounds
                run = _measure(found, token, length, options.rate, seconds)
                values += [1000 * (each.arrived - each.sent) for each in run.updates.values()]
                for name, more in run.hops(found).items() if options.hops else ():
                    parts[length].setdefault(name, []).extend(more)
    for length, values in measured.items():
        print(f"chain of {length}: {_line(values)} ({len(values)} updates)")
        for name, each in parts[length].items():
            print(f"  {name}: {_line(each)}")
    ratio = ground.percentile(measured[5], 0.5) / ground.percentile(measured[1], 0.5)
    print(f"chain of 5 against 1, p50: {ratio:.2f} times")


_PARTS = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))


def _line(values: Sequence[float]) -> str:
    cuts = " ".join(f"{name} {ground.percentile(values, part):.1f}" for name, part in _PARTS)
    return f"{cuts} max {max(values):.1f} ms"


class _Run(NamedTuple):
    """The updates of one device by their timestamps, and the stream that was watched."""

    origin: StreamRef
    watched: StreamRef
    updates: Mapping[int, hops.Update]

    def hops(self, settings: Settings) -> dict[str, list[float]]:
        """Return the milliseconds of each hop."""
        return hops.hops(settings, self.origin, self.watched, self.updates)


def _measure(settings: Settings, token: str, length: int, rate: float, seconds: float) -> _Run:
    with ground.client(settings, token) as client:
        service_object = client.create(ground.chain(length))
    device = Connection(settings, token)
    updates = max(1, int(rate * seconds))
    sent: dict[int, float] = {}
    answered: dict[int, float] = {}
    arrived: dict[int, float] = {}
    url = f"ws://{reachable(settings.host)}:{settings.delivery.port}/{service_object}/streams"
    with connect(
        f"{url}/s{length}/live", additional_headers={"Authorization": token}, compression=None
    ) as socket:

        def listen() -> None:
            while len(arrived) < updates:
                frame = socket.recv(timeout=30)
                arrived[orjson.loads(frame)["lastUpdate"]] = time.time()

        listener = threading.Thread(target=listen)
        listener.start()
        began = time.perf_counter()
        for number in range(updates):
            pause = began + number / rate - time.perf_counter()
            if pause > 0:
                time.sleep(pause)
            sent[number] = time.time()
            device.put(service_object, "s0", number, number)
            answered[number] = time.time()
        listener.join()
    return _Run(
        StreamRef(service_object, "s0"),
        StreamRef(service_object, f"s{length}"),
        {at: hops.Update(sent[at], answered[at], arrived[at]) for at in sent},
    )
