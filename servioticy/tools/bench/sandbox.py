"""What the sandbox costs, with everything on, and what a hostile tenant costs another.

Needs neither Postgres nor broker: the pool alone, its real processes.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from sandbox import Binding, Call, ChannelCode, Computation, Program, SandboxPool
from servioticy.bootstrap import sandbox_pool
from servioticy.errors import Unavailable
from servioticy.settings import Settings
from servioticy.tools.bench import processes

SECONDS = 3.0
PATH = ("channels", "t", "current-value")


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print throughput, times, memory and the effect of a hostile neighbour."""
    engines = list(arguments) or [settings.sandbox.engine]
    for engine in engines:
        print(f"engine {engine}")
        make = partial(sandbox_pool, settings, engine=engine)
        _throughput(make())
        _starts(make())
        _memory(make)
        _neighbours(make(), make())


def _throughput(pool: SandboxPool) -> None:
    try:
        for steps in (1, 10, 100, 1000):
            times = _times(pool, "tenant", [_call(_good(), steps)], SECONDS)
            _print(
                f"frames of {steps:4}", times, f"{steps / statistics.mean(times):,.0f} updates/s"
            )
        times = _times(pool, "tenant", [_call(_good(f"p{n}"), 10) for n in range(20)], SECONDS)
        _print("20 programs x 10", times, f"{200 / statistics.mean(times):,.0f} updates/s")
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
            pool.run(f"tenant {number}", [_call(_good(), 1)])
            times.append(time.perf_counter() - began)
        _print("start of a worker and its first frame", times)
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
            pool.run("many", calls)
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
                pool.run(f"tenant {number}", [_call(_good(), 10)])
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
            self._pool.run("hostile", [_call(hang, 1)])
            self._ends.wait(0.001)  # lets the other thread have the pool


def _good(name: str = "good") -> Program:
    """Return the usual kind: a formula over one value."""
    channels = (ChannelCode("t", "Math.round($0*1.8+32)", "number"),)
    return Program(name, "expression", ("A",), channels, bindings=(Binding("$0", 0, PATH),))


def _call(program: Program, steps: int) -> Call:
    updates = tuple(
        b'{"channels":{"t":{"current-value":%d,"unit":"C"}},"lastUpdate":%d}' % (n, n + 1)
        for n in range(steps)
    )
    computed = tuple(Computation(0, n + 1, n + 1, (n,)) for n in range(steps))
    return Call(program, None, None, updates, computed)


def _times(pool: SandboxPool, tenant: str, calls: list[Call], seconds: float) -> list[float]:
    pool.run(tenant, calls)
    times: list[float] = []
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        began = time.perf_counter()
        pool.run(tenant, calls)
        times.append(time.perf_counter() - began)
    return times


def _print(what: str, times: list[float], more: str = "") -> None:
    ordered = sorted(times)
    p50, p99 = (1000 * ordered[int(len(ordered) * at)] for at in (0.5, 0.99))
    print(f"  {what}: p50 {p50:.2f} ms, p99 {p99:.2f} ms  {more}".rstrip(), flush=True)
