"""What the sandbox costs, with everything on, and what a hostile tenant costs another.

Needs neither Postgres nor broker: the pool alone, its real processes.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from benchmarks import processes
from sandbox import Binding, ChannelCode, Program, SandboxPool
from sandbox.trees import Bounds, Call, Event, Last, Node, Wake, Wiring
from servioticy.bootstrap import sandbox_pool
from servioticy.errors import Unavailable
from servioticy.settings import Settings

SECONDS = 3.0
PATH = ("channels", "t", "current-value")
BOUNDS = Bounds(hops=64, computations=10_000)


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print throughput, times, memory and the effect of a hostile neighbour."""
    parser = argparse.ArgumentParser("servioticy bench sandbox")
    parser.add_argument("engines", nargs="*", default=[settings.sandbox.engine])
    for engine in parser.parse_args(arguments).engines:
        print(f"engine {engine}")
        make = partial(sandbox_pool, settings, engine=engine)
        _throughput(make())
        _starts(make())
        _memory(make)
        _neighbours(make(), make())


def _throughput(pool: SandboxPool) -> None:
    try:
        for trees in (1, 10, 100, 1000):
            _print_rate(f"frames of {trees:4} updates", pool, [_call(_good(), trees)], trees)
        calls = [_call(_good(f"p{n}"), 10) for n in range(20)]
        _print_rate("20 programs x 10", pool, calls, 200)
        calls = [_call(_good(), 10, f"device {n}") for n in range(20)]
        _print_rate("one program of 20 devices x 10", pool, calls, 200)
        for trees in (1, 10, 100, 300):
            what = f"a chain of three, {trees:4} updates"
            _print_rate(what, pool, [_chain(trees)], trees)
    finally:
        pool.close()


def _starts(pool: SandboxPool) -> None:
    try:
        began = time.perf_counter()
        pool.layers()
        print(f"  zygote and first worker: {1000 * (time.perf_counter() - began):.0f} ms")
        times = []
        for number in range(30):
            began = time.perf_counter()
            pool.grow(f"tenant {number}", [_call(_good(), 1)])
            times.append(time.perf_counter() - began)
        _print("start of a worker and its first frame", times)
        used = [pool.growing_seconds_of(f"tenant {number}") for number in range(30)]
        starts = 1000 * statistics.median(each.starts for each in used)
        preparing = 1000 * statistics.median(each.preparing for each in used)
        print(
            f"    of the processor: {starts:.1f} ms to start, {preparing:.1f} ms for its program"
        )
        times = []
        for number in range(100):
            began = time.perf_counter()
            pool.check(_good(f"checked {number}"))
            times.append(time.perf_counter() - began)
        _print("check of a new program", times)
        document = [_good(f"of a document {number}") for number in range(500)]
        began = time.perf_counter()
        pool.check_all(document)
        print(f"  check of a document of 500: {time.perf_counter() - began:.2f} s")
        calls = [_call(_good(f"many {number}"), 1) for number in range(10_000)]
        for what in ("first", "next"):
            began = time.perf_counter()
            _grow_all(pool, "many", calls)
            print(
                f"  10,000 programs, {what} time: {time.perf_counter() - began:.2f} s", flush=True
            )
    finally:
        pool.close()


def _memory(make: Callable[..., SandboxPool]) -> None:
    for tenants in (1, 10, 100):
        pool = make(max_workers=tenants)
        try:
            for number in range(tenants):
                pool.grow(f"tenant {number}", [_call(_good(), 10)])
            zygote = pool._zygote.pid or 0
            pids = [zygote, *(worker.pid for worker in pool._workers.values())]
            used = [processes.memory_megabytes(pid) for pid in pids]
            if 0.0 in used:
                raise Unavailable("only root may read how much memory a worker of the sandbox has")
            total = sum(used)
            print(
                f"  {tenants:3} tenants: {total:.0f} MB in all, {total / tenants:.1f} each (PSS)"
            )
        finally:
            pool.close()


def _neighbours(ours: SandboxPool, theirs: SandboxPool) -> None:
    calls = [_call(_good(), 100)]
    try:
        _print("neighbour alone, frames of 100", _times(ours, "good", calls, SECONDS))
        with _Attack(theirs, new_programs=True):
            _print("attacked in another partition", _times(ours, "good", calls, SECONDS))
        with _Attack(ours, new_programs=False):
            _print("in its own, one program hangs", _times(ours, "good", calls, SECONDS))
    finally:
        ours.close()
        theirs.close()


class _Attack:
    """A tenant that hangs as often as it can, in a thread of its own."""

    def __init__(self, pool: SandboxPool, new_programs: bool) -> None:
        self._pool = pool
        self._new = new_programs
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._ends.set()
        self._thread.join()

    def _work(self) -> None:
        number = 0
        while not self._ends.is_set():
            number += self._new
            code = f"function(A){{while(true){{}} return {number}}}"
            hang = Program(code, "function", ("A",), (ChannelCode("t", code, "number"),))
            self._pool.grow("hostile", [_step(hang)])
            self._ends.wait(0.001)  # lets the other thread have the pool


def _good(name: str = "good") -> Program:
    """Return the usual kind: a formula over one value."""
    channels = (ChannelCode("t", "Math.round($0*1.8+32)", "number"),)
    return Program(name, "expression", ("A",), channels, bindings=(Binding("$0", 0, PATH),))


def forward(pool: SandboxPool) -> Callable[[int], object]:
    """Return what computes so many updates by the usual program, in one call."""
    program = _good("forward")
    return lambda trees: pool.grow("tenant", [_call(program, trees)])


def _call(program: Program, trees: int, device: str = "") -> Call:
    """A device's stream that a program reads, and so many updates of it."""
    nodes = (Node((Wake(0, 1, 0),)), Node((), program, ((0,),)))
    updates = [[_update(n)] for n in range(trees)]
    names = ["", program.id + device]
    return Call(Wiring(program.id, nodes), names, [], updates, BOUNDS)


def _chain(trees: int) -> Call:
    """Three composites, each of which reads the one before it."""
    program = _good()
    nodes = [Node((Wake(0, n + 1, 0),), program if n else None, ((n - 1,),)) for n in range(4)]
    nodes = [replace(nodes[0], inputs=()), *nodes[1:3], replace(nodes[3], wakes=())]
    lasts = [Last(n, 0, None) for n in (1, 2, 3)]
    updates = [[_update(n)] for n in range(trees)]
    return Call(Wiring("chain", tuple(nodes)), ["", "a", "b", "c"], lasts, updates, BOUNDS)


def _step(program: Program) -> Call:
    call = _call(program, 1)
    return replace(call, trees=[[_update(0)._replace(only=0)]])


def _update(number: int) -> Event:
    text = b'{"channels":{"t":{"current-value":%d,"unit":"C"}},"lastUpdate":%d}'
    return Event(0, number + 1, text % (number, number + 1))


def _grow_all(pool: SandboxPool, tenant: str, calls: Sequence[Call]) -> None:
    """Grow the trees of calls that know nothing of each other, and what the pool leaves over."""
    while calls:
        left = []
        for call, grown in zip(calls, pool.grow(tenant, calls), strict=True):
            if grown.failed:
                raise Unavailable("the sandbox is too slow here to be measured")
            if len(grown.made) < len(call.trees):
                left.append(replace(call, trees=call.trees[len(grown.made) :]))
        calls = left


def _times(pool: SandboxPool, tenant: str, calls: list[Call], seconds: float) -> list[float]:
    _grow_all(pool, tenant, calls)
    times: list[float] = []
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        began = time.perf_counter()
        _grow_all(pool, tenant, calls)
        times.append(time.perf_counter() - began)
    return times


def _print_rate(what: str, pool: SandboxPool, calls: list[Call], updates: int) -> None:
    times = _times(pool, "tenant", calls, SECONDS)
    _print(what, times, f"{updates / statistics.mean(times):,.0f} updates/s")


def _print(what: str, times: list[float], more: str = "") -> None:
    ordered = sorted(times)
    p50, p99 = (1000 * ordered[int(len(ordered) * at)] for at in (0.5, 0.99))
    print(f"  {what}: p50 {p50:.2f} ms, p99 {p99:.2f} ms  {more}".rstrip(), flush=True)
