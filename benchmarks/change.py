"""A changed script takes effect: from the answer 200 to the first update it made.

A device sends at a steady rate and a WebSocket listens, while the composite's document is
replaced again and again. Every version returns its own number, so each frame tells which
one made it. Device and owner are on http.client: httpx would add its own time
(connection.py). Nothing may be lost, doubled, or made by an older version after a newer one.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Sequence
from typing import Any

import orjson
from websockets.sync.client import connect

from benchmarks import ground
from benchmarks.connection import Connection
from servioticy.errors import ServioticyError
from servioticy.settings import Settings
from servioticy.settings.places import reachable


class Wrong(ServioticyError):
    """Something was lost, doubled, or made by the wrong version."""


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print how long the request took, and how long after it the new script was at work."""
    parser = argparse.ArgumentParser("servioticy bench change")
    parser.add_argument("--rate", type=float, default=100.0, help="updates a second")
    parser.add_argument("--changes", type=int, default=100, help="how many, half a second apart")
    options = parser.parse_args(arguments)
    with ground.platform(settings) as found:
        requests, effects, ordinary = _measure(found, options.rate, options.changes)
    _show("the request, to its 200", requests)
    _show("from the 200 to the first update by the new script", effects)
    _show("every update meanwhile, PUT to WebSocket", ordinary)
    print(f"{len(ordinary)} updates, each once and in order; {options.changes} changes")


def _show(what: str, seconds: Sequence[float]) -> None:
    p50, p99 = (ground.percentile(seconds, part) * 1000 for part in (0.5, 0.99))
    print(f"{what}: p50 {p50:.1f} p99 {p99:.1f} max {max(seconds) * 1000:.1f} ms")


def _measure(
    settings: Settings, rate: float, changes: int
) -> tuple[list[float], list[float], list[float]]:
    token = ground.token(settings)
    with ground.client(settings, token) as client:
        id_ = client.create(_document(1))
    owner = Connection(settings, token)
    asked: dict[int, float] = {}
    answered: dict[int, float] = {}
    frames: list[tuple[int, int, float]] = []
    sent: list[float] = []
    stop, heard = threading.Event(), threading.Event()
    url = f"ws://{reachable(settings.host)}:{settings.delivery.port}/{id_}/streams/out/live"
    with connect(url, additional_headers={"Authorization": token}, compression=None) as socket:

        def listen() -> None:
            while True:
                update = orjson.loads(socket.recv(timeout=30))
                version = update["channels"]["v"]["current-value"]
                frames.append((update["lastUpdate"], version, time.perf_counter()))
                if heard.is_set() and len(frames) >= len(sent):
                    return

        def put(device: Connection) -> None:
            sent.append(time.perf_counter())
            device.put(id_, "data", 1, len(sent) - 1)

        def drive() -> None:
            device = Connection(settings, token)
            began = time.perf_counter()
            while not stop.is_set():
                pause = began + len(sent) / rate - time.perf_counter()
                if pause > 0:
                    time.sleep(pause)
                put(device)
            heard.set()
            put(device)

        threads = [threading.Thread(target=each, daemon=True) for each in (listen, drive)]
        for each in threads:
            each.start()
        for version in range(2, changes + 2):
            time.sleep(0.5)
            asked[version] = time.perf_counter()
            owner.change(id_, _document(version))
            answered[version] = time.perf_counter()
        time.sleep(0.5)
        stop.set()
        for each in threads:
            each.join(60)
    _check(frames, len(sent))
    first = {version: at for _, version, at in reversed(frames)}
    return (
        [answered[version] - asked[version] for version in asked],
        [max(0.0, first[version] - answered[version]) for version in asked],
        [at - sent[number] for number, _, at in frames],
    )


def _check(frames: Sequence[tuple[int, int, float]], sent: int) -> None:
    if [number for number, _, _ in frames] != list(range(sent)):
        raise Wrong(f"{sent} updates were sent, {len(frames)} came, or not in order")
    versions = [version for _, version, _ in frames]
    if versions != sorted(versions):
        raise Wrong("an older version computed after a newer one")


def _document(number: int) -> dict[str, Any]:
    channel = {"type": "number"}
    code = {**channel, "current-value": f"function(data){{return {number}}}"}
    streams = {"data": {"channels": {"v": channel}}, "out": {"channels": {"v": code}}}
    return {"name": "changing", "version": "0.2.0", "streams": streams}
