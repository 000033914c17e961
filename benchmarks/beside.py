"""PUTs of one tenant, alone and while another one posts documents that take longest to read.

The documents are refused at their very end, so it is reading them that is measured, and
neither the check of their code nor storing them.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import orjson

from benchmarks import ground
from benchmarks.connection import Connection
from benchmarks.worst_documents import everything
from servioticy.settings import Settings

SIZE = 480_000
PAUSE = 0.02
DEVICE = {"streams": {"s": {"channels": {"v": {"type": "number"}}}}}


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print the times of PUTs beside nobody, and beside some who post."""
    parser = argparse.ArgumentParser("servioticy bench beside")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--connections", type=int, default=4, help="that post documents at once")
    options = parser.parse_args(arguments)
    with ground.platform(settings) as found:
        _show("alone", _puts(found, options.seconds), [])
        with _posting(found, options.connections) as taken:
            _show("beside", _puts(found, options.seconds), taken)


def _show(what: str, puts: Sequence[float], posts: Sequence[float]) -> None:
    p50, p99 = (1000 * ground.percentile(puts, part) for part in (0.5, 0.99))
    print(f"{what}: {len(puts)} PUTs, p50 {p50:.1f} p99 {p99:.1f} max {1000 * max(puts):.1f} ms")
    if posts:
        print(f"  {len(posts)} documents refused, p50 {ground.percentile(posts, 0.5):.2f} s each")


def _puts(settings: Settings, seconds: float) -> list[float]:
    token = ground.token(settings)
    with ground.client(settings, token) as client:
        id_ = client.create(DEVICE)
    device = Connection(settings, token)
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        device.put(id_, "s", 1.0, len(taken))
        taken.append(time.perf_counter() - began)
        time.sleep(PAUSE)
    return taken


@contextmanager
def _posting(settings: Settings, connections: int) -> Iterator[list[float]]:
    document = everything(SIZE)
    document["streams"]["last"] = {"channels": {"x": {"type": "none of ours"}}}
    body, stop, taken = orjson.dumps(document), threading.Event(), list[float]()

    def post() -> None:
        tenant = Connection(settings, ground.token(settings, "other"))
        while not stop.is_set():
            began = time.perf_counter()
            status, text = tenant.request("POST", "/", body)
            if status != 400 or b"none of ours" not in text:
                raise RuntimeError(text.decode())
            taken.append(time.perf_counter() - began)

    threads = [threading.Thread(target=post, daemon=True) for _ in range(connections)]
    for each in threads:
        each.start()
    try:
        yield taken
    finally:
        stop.set()
        for each in threads:
            each.join(30)
