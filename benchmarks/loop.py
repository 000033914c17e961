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
        token = ground.token(found)
        with ground.client(found, token) as client:
            ids = [client.create(ground.chain(1)) for _ in range(options.connections)]
        watchers = [
            stack.enter_context(Watcher(found, token, StreamRef(each, "s1"))) for each in ids
        ]
        sent: list[float] = []

        def put(_number: int) -> bytes:
            number = len(sent)
            sent.append(time.perf_counter())
            body = b'{"channels":{"v":{"current-value":%d}},"lastUpdate":%d}' % (number, number)
            return request("PUT", f"/{ids[number % len(ids)]}/streams/s0", token, body)

        closed_loop(found, options.connections, WARM_SECONDS, put, 202)
        for number in range(1, options.rounds + 1):
            _until_nothing_comes(watchers, sent)
            first, began, before = len(sent), time.perf_counter(), running.used(found)
            measured = closed_loop(found, options.connections, options.seconds, put, 202)
            _until_nothing_comes(watchers, sent)
            took, after = time.perf_counter() - began, running.used(found)
            arrived = {at: when for each in watchers for at, when in each.arrived.items()}
            waits = [
                1e3 * (arrived[at] - sent[at]) for at in range(first, len(sent)) if at in arrived
            ]
            p50, p99 = (ground.percentile(waits, part) for part in (0.5, 0.99))
            count = len(sent) - first
            print(
                f"round {number}: accepted {count / measured.lasted:,.0f}/s, "
                f"{len(waits):,} of {count:,} at their sockets (others were overtaken), "
                f"{len(waits) / took:,.0f}/s, "
                f"p50 {p50:.1f} p99 {p99:.1f} ms"
            )
            print(f"  each {costs(before, after, count)}", flush=True)


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
