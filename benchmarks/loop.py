"""The closed loop: connections that send as soon as they are answered, until all is on a socket.

Each device has one composite, whose updates are watched over a socket of its own. So an update is
accepted, computed, stored twice and delivered; how many a second, how long from before the request
to the frame, and what that takes of the processor by program.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

from benchmarks import ground
from benchmarks.attacks import running
from benchmarks.border.watcher import Watcher
from benchmarks.processes import costs, processor_seconds
from benchmarks.rest.load import closed_loop, request
from benchmarks.rivals import on_node_red
from servioticy.domain.model import StreamRef
from servioticy.settings import Settings, changed

WARM_SECONDS = 3.0
Used: TypeAlias = Callable[[], dict[str, float]]
"""Seconds of the processor by program, so far."""
REST_SECONDS = 30.0
"""In which what has been sent last has to arrive."""


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print rounds: accepted and arrived a second, p50 and p99 in ms, microseconds by program."""
    parser = argparse.ArgumentParser("servioticy bench loop")
    parser.add_argument("--connections", type=int, default=32, help="and as many devices")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--rivals",
        action="store_true",
        help="let Node-RED do the same in turns, with the same Postgres; npm fetches it once",
    )
    options = parser.parse_args(arguments)
    with ground.platform(settings) as found, ExitStack() as stack:
        ours = Loop.of_platform(found, options.connections, stack)
        loops: dict[str, tuple[Loop, Used]] = {"here": (ours, partial(running.used, found))}
        if options.rivals:
            loops["Node-RED"] = _node_red(settings, found, options.connections, stack)
        for loop, _used in loops.values():
            loop.warm()
        for number in range(1, options.rounds + 1):
            for name, (loop, used) in loops.items():
                before = used()
                each = loop.round(options.seconds)
                after = used()
                p50, p99 = (ground.percentile(each.waits, part) for part in (0.5, 0.99))
                print(
                    f"round {number}, {name}: accepted {each.accepted_a_second:,.0f}/s, "
                    f"{len(each.waits):,} of {each.sent:,} at their sockets (others were "
                    f"overtaken), {each.arrived_a_second:,.0f}/s, p50 {p50:.1f} p99 {p99:.1f} ms"
                )
                print(f"  each {costs(before, after, each.sent)}", flush=True)


def _node_red(
    settings: Settings, found: Settings, devices: int, stack: ExitStack
) -> tuple[Loop, Used]:
    """Its loop, and what it and the Postgres of the platform use."""
    names = [f"d{number}" for number in range(devices)]
    started = on_node_red.running(Path(settings.data), found.store.dsn, names)
    rival = stack.enter_context(started)

    def used() -> dict[str, float]:
        postgres = running.used(found).get("postgres", 0.0)
        return {"Node-RED": processor_seconds(rival.pid), "postgres": postgres}

    watchers = [stack.enter_context(Watcher(rival.live(each), {})) for each in names]
    place = changed(found, api_port=rival.port)
    return Loop(Target(place, "nobody's", names, watchers)), used


class Round(NamedTuple):
    """What came of a round."""

    sent: int
    accepted_a_second: float
    arrived_a_second: float
    waits: Sequence[float]
    """in ms, of those at their sockets"""


class Target(NamedTuple):
    """Devices, and who watches what is derived from each."""

    settings: Settings
    """of whose API requests are made"""
    token: str
    devices: Sequence[str]
    watchers: Sequence[Watcher]


class Loop:
    """Sends to the devices of a target in turns."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._sent: list[float] = []

    @classmethod
    def of_platform(cls, settings: Settings, devices: int, stack: ExitStack) -> Self:
        """One with devices of a tenant of their own, which are watched until the stack ends."""
        token = ground.token(settings)
        with ground.client(settings, token) as client:
            ids = [client.create(ground.chain(1)) for _ in range(devices)]
        watchers = [
            stack.enter_context(Watcher.of(settings, token, StreamRef(each, "s1"))) for each in ids
        ]
        return cls(Target(settings, token, ids, watchers))

    def warm(self) -> None:
        """Send for a while, which is not measured."""
        settings, _token, devices, watchers = self._target
        closed_loop(settings, len(devices), WARM_SECONDS, self._put, 202)
        _until_nothing_comes(watchers, self._sent)

    def round(self, seconds: float) -> Round:
        """Send for so long, and wait until all is at its socket. Raises RuntimeError."""
        sent, (settings, _token, devices, watchers) = self._sent, self._target
        first, began = len(sent), time.perf_counter()
        measured = closed_loop(settings, len(devices), seconds, self._put, 202)
        _until_nothing_comes(watchers, sent)
        took = time.perf_counter() - began
        arrived = {at: when for each in watchers for at, when in each.arrived.items()}
        waits = [1e3 * (arrived[at] - sent[at]) for at in range(first, len(sent)) if at in arrived]
        count = len(sent) - first
        return Round(count, count / measured.lasted, len(waits) / took, waits)

    def _put(self, _number: int) -> bytes:
        number = len(self._sent)
        self._sent.append(time.perf_counter())
        body = b'{"channels":{"v":{"current-value":%d}},"lastUpdate":%d}' % (number, number)
        device = self._target.devices[number % len(self._target.devices)]
        return request("PUT", f"/{device}/streams/s0", self._target.token, body)


def _until_nothing_comes(watchers: Sequence[Watcher], sent: Sequence[float]) -> None:
    """Wait until the newest update of each device is at its socket.

    What is not there by then never comes: it was overtaken by a newer one of its device, and is
    stale. Raises RuntimeError where the newest does not come.
    """
    devices = len(watchers)
    newest = [len(sent) - 1 - (len(sent) - 1 - device) % devices for device in range(devices)]
    end = time.perf_counter() + REST_SECONDS
    while not all(at in each.arrived for each, at in zip(watchers, newest, strict=True)):
        if time.perf_counter() > end:
            raise RuntimeError(f"an update has not come to its socket within {REST_SECONDS:g} s")
        time.sleep(0.01)
