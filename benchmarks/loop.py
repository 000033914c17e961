"""The closed loop: connections that send as soon as they are answered, until all is on a socket.

Each device has one composite, whose updates are watched over a socket of its own. So an update is
accepted, computed, stored twice and delivered; how many a second, how long from before the request
to the frame, and what that takes of the processor by program.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from benchmarks import ground
from benchmarks.attacks import running
from benchmarks.border.watcher import Watcher
from benchmarks.processes import costs
from benchmarks.rest.load import closed_loop, request
from servioticy.domain.model import StreamRef
from servioticy.settings import Settings

WARM_SECONDS = 3.0
REST_SECONDS = 30.0
"""In which what has been sent last has to arrive."""


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print rounds: accepted and arrived a second, p50 and p99 in ms, microseconds by program."""
    parser = argparse.ArgumentParser("servioticy bench loop")
    parser.add_argument("--connections", type=int, default=32, help="and as many devices")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    with ground.platform(settings) as found, ExitStack() as stack:
        loop = Loop(found, options.connections, stack)
        loop.warm()
        for number in range(1, options.rounds + 1):
            before = running.used(found)
            each = loop.round(options.seconds)
            after = running.used(found)
            p50, p99 = (ground.percentile(each.waits, part) for part in (0.5, 0.99))
            print(
                f"round {number}: accepted {each.accepted_a_second:,.0f}/s, "
                f"{len(each.waits):,} of {each.sent:,} at their sockets (others were overtaken), "
                f"{each.arrived_a_second:,.0f}/s, "
                f"p50 {p50:.1f} p99 {p99:.1f} ms"
            )
            print(f"  each {costs(before, after, each.sent)}", flush=True)


class Round(NamedTuple):
    """What came of a round."""

    sent: int
    accepted_a_second: float
    arrived_a_second: float
    waits: Sequence[float]
    """in ms, of those at their sockets"""


class Loop:
    """Devices of a tenant of their own, and who watches what is derived from each."""

    def __init__(self, settings: Settings, connections: int, stack: ExitStack) -> None:
        """Watch until the stack ends."""
        self._settings = settings
        self._token = token = ground.token(settings)
        with ground.client(settings, token) as client:
            self._ids = [client.create(ground.chain(1)) for _ in range(connections)]
        self._watchers = [
            stack.enter_context(Watcher(settings, token, StreamRef(each, "s1")))
            for each in self._ids
        ]
        self._sent: list[float] = []

    def warm(self) -> None:
        """Send for a while, which is not measured."""
        closed_loop(self._settings, len(self._ids), WARM_SECONDS, self._put, 202)
        _until_nothing_comes(self._watchers, self._sent)

    def round(self, seconds: float) -> Round:
        """Send for so long, and wait until all is at its socket. Raises RuntimeError."""
        sent = self._sent
        first, began = len(sent), time.perf_counter()
        measured = closed_loop(self._settings, len(self._ids), seconds, self._put, 202)
        _until_nothing_comes(self._watchers, sent)
        took = time.perf_counter() - began
        arrived = {at: when for each in self._watchers for at, when in each.arrived.items()}
        waits = [1e3 * (arrived[at] - sent[at]) for at in range(first, len(sent)) if at in arrived]
        count = len(sent) - first
        return Round(count, count / measured.lasted, len(waits) / took, waits)

    def _put(self, _number: int) -> bytes:
        number = len(self._sent)
        self._sent.append(time.perf_counter())
        body = b'{"channels":{"v":{"current-value":%d}},"lastUpdate":%d}' % (number, number)
        return request(
            "PUT", f"/{self._ids[number % len(self._ids)]}/streams/s0", self._token, body
        )


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
