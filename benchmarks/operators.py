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
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import operators
from benchmarks.sandbox import forward
from operators import manifest
from operators.instance import Place
from operators.manifest import Described
from operators.node import Node
from servioticy.bootstrap import sandbox_pool
from servioticy.errors import Unavailable
from servioticy.ports.programs import Program, Question
from servioticy.settings import Settings

RATES = (1_000, 10_000)
BATCHES = (1, 10, 100, 1_000, 10_000)
TICK = 0.001
PYTHON = "from servioticy_operator import serve\nserve(lambda event, state: event.channels)\n"
EVENT = (
    b'{"stream":"payments","timestamp":1700000000000,"channels":{"amount":12.5,"card":"4711"},'
    b'"version":1,"correlation":"a"}'
)


_Asked = dict[bytes, float]


class _Folders:
    """A program that is in a folder, in any version."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder(self, _program: Program) -> tuple[Described, Path]:
        return manifest.read((self._folder / manifest.FILE).read_bytes()), self._folder


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print latencies at each rate, throughput by batch size, and the time of an update."""
    parser = argparse.ArgumentParser("servioticy bench operators")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each rate (5)")
    seconds = parser.parse_args(arguments).seconds
    print(f"load {os.getloadavg()[0]:.1f}")
    pool = sandbox_pool(settings)
    try:
        grow = forward(pool)
        grow(1)
        for rate in RATES:
            _print("JavaScript", rate, _paced_calls(grow, rate, seconds))
    finally:
        pool.close()
    for language in ("python", "node"):
        if shutil.which("node") is None and language == "node":
            continue
        with tempfile.TemporaryDirectory() as place:
            _language(language, Path(place), seconds)


def _language(language: str, place: Path, seconds: float) -> None:
    room, folder = Path(operators.__path__[0]), place / "operator"
    for each in ("samples", "kits"):
        shutil.copytree(room / each / language, folder, dirs_exist_ok=True)
    if language == "python":
        (folder / "main.py").write_text(PYTHON)
    (place / "root").mkdir()
    node = Node(_Folders(folder), Place(place / "root", strangers=False))
    try:
        started = _ask(node, 1, 1)
        print(f"{language}: from its first question to its answer {1000 * started:.0f} ms")
        for rate in RATES:
            _print(language, rate, _paced(node, rate, seconds))
        for batch in BATCHES:
            count = max(1, 20_000 // batch)
            took = sum(_ask(node, 1, batch) for _ in range(min(count, 200)))
            print(f"  {min(count, 200) * batch / took:10,.0f} events/s in questions of {batch}")
        took = _ask(node, 2, 1)
        print(f"  another version: {1000 * took:.0f} ms to its first answer, the first goes on")
    finally:
        node.close()


def _ask(node: Node, version: int, events: int) -> float:
    """Ask one question; the seconds until it is answered."""
    began = time.perf_counter()
    program = Program(1, "forward", version)
    if not node.ask(Question(b"1", program, "so/s", None, [EVENT] * events)):
        raise Unavailable("there is no room")
    while not (replies := node.replies(10.0)):
        if time.perf_counter() - began > 60:
            raise Unavailable("it does not answer")
    if replies[0].error:
        raise Unavailable(replies[0].error)
    return time.perf_counter() - began


def _paced(node: Node, rate: int, seconds: float) -> list[float]:
    """Ask at a rate; the seconds that each question took to be answered."""
    program, asked, times = Program(1, "forward", 1), _Asked(), list[float]()
    number = sent = 0
    began = time.perf_counter()
    while (now := time.perf_counter()) - began < seconds or asked:
        due = int((now - began) * rate) - sent if now - began < seconds else 0
        if due > 0:
            number += 1
            name = b"%d" % number
            if node.ask(Question(name, program, "so/s", None, [EVENT] * min(due, 10_000))):
                asked[name] = now
            sent += due
        for reply in node.replies(TICK):
            times.append(time.perf_counter() - asked.pop(reply.id))
    return times


def _paced_calls(grow: Callable[[int], object], rate: int, seconds: float) -> list[float]:
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
    return times


def _print(name: str, rate: int, times: list[float]) -> None:
    cut = statistics.quantiles(times, n=100)
    print(
        f"  {name:10} forward at {rate:6,}/s: {1000 * statistics.fmean(times):6.2f} ms mean, "
        f"{1000 * cut[49]:6.2f} p50, {1000 * cut[94]:6.2f} p95, {1000 * cut[98]:6.2f} p99"
    )
