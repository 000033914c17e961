"""What a program of a tenant's own costs beside JavaScript: the paper's forward operator.

Needs neither Postgres nor broker: the node manager alone and the sandbox alone, with their real
processes (Luthra et al., Operator as a Service, 2020, tables III and IV, figure 5). Events come at
a rate, in questions of what has come within a millisecond; a latency is from then to the reply.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from benchmarks import operators_bulk, operators_fraud
from benchmarks.operator_nodes import TRANSPORTS, ask, node_with
from benchmarks.sandbox import forward
from operators.node import Node
from servioticy.bootstrap import sandbox_pool
from servioticy.ports.programs import Program, Question
from servioticy.settings import Settings

RATES = (1_000, 10_000)
MOST_RATE = 1_024_000
KEEPS_UP = 0.9
"""It is saturated where less than this part of what comes is answered in the time it comes."""

BATCHES = (1, 10, 100, 1_000, 10_000)
TICK = 0.001
PYTHON = "from servioticy_operator import serve\nserve(lambda event, state: event.channels)\n"
EVENT = (
    b'{"stream":"payments","timestamp":1700000000000,"channels":{"amount":12.5,"card":"4711"},'
    b'"version":1,"correlation":"a"}'
)


_Asked = dict[bytes, float]


class _Paced(NamedTuple):
    """What came of events at a rate."""

    times: list[float]
    """The seconds that each question took."""
    answered: float
    """Events a second, until the last one was."""


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print latencies at each rate, throughput by batch size, and the time of an update."""
    parser = argparse.ArgumentParser("servioticy bench operators")
    parser.add_argument(
        "what", nargs="?", default="forward", choices=("forward", "saturation", "bulk", "fraud")
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="of each rate (5)")
    parser.add_argument(
        "--scale", type=float, default=10.0, help="bulk: how many times as fast (10)"
    )
    options = parser.parse_args(arguments)
    print(f"load {os.getloadavg()[0]:.1f}")
    if options.what == "bulk":
        operators_bulk.run(options.scale)
        return
    if options.what == "fraud":
        operators_fraud.run(settings, RATES, options.seconds)
        return
    is_to_saturate = options.what == "saturation"
    pool = sandbox_pool(settings)
    try:
        grow = forward(pool)
        grow(1)
        _paces("JavaScript", partial(_paced_calls, grow), options.seconds, is_to_saturate)
    finally:
        pool.close()
    for language in ("python", "node"):
        if shutil.which("node") is None and language == "node":
            continue
        for transport in TRANSPORTS:
            _forward(language, transport, options.seconds, is_to_saturate)


def _paces(
    name: str, paced: Callable[[int, float], _Paced], seconds: float, is_to_saturate: bool
) -> None:
    """Print how it does at the paper's rates; or at each twice the one before, until too much."""
    rate = RATES[0]
    most = 0.0
    while rate <= (MOST_RATE if is_to_saturate else RATES[-1]):
        found = paced(rate, seconds)
        _print(name, rate, found)
        most = max(most, found.answered)
        if is_to_saturate and found.answered < KEEPS_UP * rate:
            break
        rate *= 2 if is_to_saturate else 10
    if is_to_saturate:
        print(f"{name}: saturated at {most:,.0f} events/s", flush=True)


def _forward(language: str, transport: str, seconds: float, is_to_saturate: bool) -> None:
    files = {"main.py": PYTHON} if language == "python" else {}
    with node_with(language, files, transport, name="forward") as node:
        name = f"{language}, {transport}"
        print(f"{name}: from its first question to its answer {1000 * _ask(node, 1, 1):.0f} ms")
        _paces(name, partial(_paced, node), seconds, is_to_saturate)
        if is_to_saturate:
            return
        for batch in BATCHES:
            count = min(max(1, 20_000 // batch), 200)
            took = sum(_ask(node, 1, batch) for _ in range(count))
            print(f"  {count * batch / took:10,.0f} events/s in questions of {batch}")
        took = _ask(node, 2, 1)
        print(f"  another version: {1000 * took:.0f} ms to its first answer, the first goes on")


def _ask(node: Node, version: int, events: int) -> float:
    """Ask one question; the seconds until it is answered."""
    began = time.perf_counter()
    ask(node, Question(b"1", Program(1, "forward", version), "so/s", None, [EVENT] * events))
    return time.perf_counter() - began


def _paced(node: Node, rate: int, seconds: float) -> _Paced:
    """Ask at a rate; what finds no room is not asked any more."""
    program, asked, times = Program(1, "forward", 1), _Asked(), list[float]()
    number = sent = taken = 0
    began = time.perf_counter()
    while (now := time.perf_counter()) - began < seconds or asked:
        due = int((now - began) * rate) - sent if now - began < seconds else 0
        if due > 0:
            number += 1
            name = b"%d" % number
            events = [EVENT] * min(due, 10_000)
            if node.ask(Question(name, program, "so/s", None, events)):
                asked[name] = now
                taken += len(events)
            sent += due
        for reply in node.replies(TICK):
            times.append(time.perf_counter() - asked.pop(reply.id))
    return _Paced(times, taken / (time.perf_counter() - began))


def _paced_calls(grow: Callable[[int], object], rate: int, seconds: float) -> _Paced:
    times: list[float] = []
    sent, began = 0, time.perf_counter()
    while (now := time.perf_counter()) - began < seconds:
        due = int((now - began) * rate) - sent
        if due <= 0:
            time.sleep(TICK)
            continue
        grow(min(due, 1000))
        sent += min(due, 1000)
        times.append(time.perf_counter() - now)
    return _Paced(times, sent / (time.perf_counter() - began))


def _print(name: str, rate: int, found: _Paced) -> None:
    times = found.times
    cut = statistics.quantiles(times, n=100)
    print(
        f"  {name:16} forward at {rate:9,}/s: {found.answered:9,.0f}/s answered, "
        f"{1000 * statistics.fmean(times):6.2f} ms mean, "
        f"{1000 * cut[49]:6.2f} p50, {1000 * cut[94]:6.2f} p95, {1000 * cut[98]:6.2f} p99"
    )
