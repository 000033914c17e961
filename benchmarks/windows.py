"""What windows cost: updates a second and processor time, beside the same streams without one.

A `pipeline.task.Task` takes a prepared list of rows, as in `bench stages`: with a Postgres, a
broker and a sandbox, without Spark. Each stream has one composite, whose code asks for a mean.
The log's time is that of the updates and lies in the future, as the times that windows set
themselves do where data comes: so no window ends by the clock. `--rivals` has others compute the
same windows in the same run (`rivals/`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson

from benchmarks import backlog
from benchmarks.rivals.environment import WINDOWS, python_of
from benchmarks.rivals.measure import RIVALS, measured
from benchmarks.stages import Bench, real
from pipeline.work import Row
from servioticy.changes import Changes
from servioticy.domain.records import UpdateRecord, write
from servioticy.errors import SetupError
from servioticy.settings import Settings

PLAIN = "function(air){return air.channels.v['current-value']}"
MEAN = "function(air){return air.mean('v')}"
BY = "function(air){return Object.keys(air.by('sensor')).length}"
QUANTILE = "function(air){return air.quantile('v', 0.9)}"
WARM = 2
"""Updates of each stream, or batches if those are more, before it is measured."""

BYTES = """SELECT coalesce(sum(octet_length(key) + octet_length(value)), 0) FROM kept_entries"""


class Case(NamedTuple):
    """Streams, which all have the same window; each sends once a second of its own time."""

    name: str
    streams: int
    window: Mapping[str, str] | None = None
    code: str = MEAN
    sensors: int = 0
    """Values of a channel by which there are aggregates."""
    open: int = 1
    """Windows of each stream that are open at once."""


def _tumbling(seconds: int, **more: str) -> dict[str, str]:
    return {"type": "tumbling", "size": f"{seconds}s"} | more


HOPPING = {"type": "hopping", "size": "300s", "every": "10s"}
"""Each update is in 30 windows."""

CASES = (
    Case("no window", 1, code=PLAIN),
    Case("tumbling, 10 updates", 1, _tumbling(10)),
    Case("tumbling, 1,000 updates", 1, _tumbling(1000)),
    Case("tumbling, 100,000 updates", 1, _tumbling(100_000)),
    Case("100 open windows of 10 updates", 1, _tumbling(10, delay="1000s"), open=100),
    Case(
        "hopping 1:30, 10 updates", 1, {"type": "hopping", "size": "300s", "every": "10s"}, open=30
    ),
    Case("sliding, 60 updates", 1, {"type": "sliding", "size": "60s"}),
    Case("by 100 values, 1,000 updates", 1, _tumbling(1000), BY, 100),
    Case("quantile, 1,000 updates", 1, _tumbling(1000), QUANTILE),
    Case("no window", 100, code=PLAIN),
    Case("tumbling, 10 updates", 100, _tumbling(10)),
    Case("no window", 10_000, code=PLAIN),
    Case("tumbling, 10 updates", 10_000, _tumbling(10)),
)


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print a line for every case."""
    parser = argparse.ArgumentParser("servioticy bench windows")
    parser.add_argument("--updates", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=1000, help="updates taken at once")
    parser.add_argument("--alone", type=int, default=200, help="updates that come one by one")
    parser.add_argument("--streams", type=int, default=10_000, help="cases with more are left out")
    parser.add_argument("--only", default="", help="windows whose name has this in it")
    parser.add_argument(
        "--rivals",
        action="store_true",
        help="let Bytewax and Quix Streams do the same beside, in an environment of their own",
    )
    options = parser.parse_args(arguments)
    python = python_of(Path(settings.data), WINDOWS) if options.rivals else None
    options.no_security = options.no_accounts = False
    cases = [each for each in CASES if each.streams <= options.streams]
    with ExitStack() as stack:
        bench = stack.enter_context(real(settings, options))
        tenant = bench.tenants.tenant_of(bench.tenants.create_tenant("bench")) or 0
        print(
            "streams window                         | updates/s of without | us an update: "
            "here sandbox Postgres Kafka of without | ms alone: p50 p99 | bytes an open window"
        )
        without: dict[int, Figures] = {}
        for case in cases:
            if case.window is not None and options.only not in case.name:
                continue
            found = _measure(bench, case, tenant, options)
            if case.window is None:
                without[case.streams] = found
            print(_line(case, found, without[case.streams]), flush=True)
        if python is not None:
            _let_others(python, bench.broker, options.updates)


def _let_others(python: Path, broker: str, updates: int) -> None:
    """Print what the rivals take for the same updates of one stream."""
    print(
        "rival                  keys window                    | updates/s | us an update "
        "| results | bytes an open window"
    )
    for name, program in RIVALS.items():
        for number, case in enumerate(OF_RIVALS):
            many = max(updates, WARM * case.streams) if case.streams > 1 else updates
            work = {"updates": many, "keys": case.streams, "broker": broker}
            work |= {"size": case.size, "every": case.every, "name": f"rivals-{number}"}
            try:
                found = measured(python, program, work)
            except SetupError as error:
                print(f"{name:19s} {case.streams:7,d} {case.name:25s} | {error}", flush=True)
                continue
            kept = found.memory / (case.streams * case.open)
            print(
                f"{name:19s} {case.streams:7,d} {case.name:25s} | {found.speed:9.0f} | "
                f"{found.processor:12.0f} | {found.results:7,d} | {kept:9.0f}",
                flush=True,
            )


class OfRivals(NamedTuple):
    """Windows that they compute, too: of so many streams, of so many seconds, each so many."""

    name: str
    streams: int
    size: int
    every: int | None = None
    open: int = 1


OF_RIVALS = (
    OfRivals("tumbling, 10 updates", 1, 10),
    OfRivals("tumbling, 1,000 updates", 1, 1000),
    OfRivals("tumbling, 100,000 updates", 1, 100_000),
    OfRivals("hopping 1:30, 10 updates", 1, 300, 10, 30),
    OfRivals("tumbling, 10 updates", 100, 10),
    OfRivals("tumbling, 10 updates", 10_000, 10),
)


class Figures(NamedTuple):
    """What a case took."""

    speed: float
    """Updates a second."""
    used: Mapping[str, float]
    """Microseconds of the processor for each update, by program."""
    kept: float
    """Bytes of each open window."""
    alone: Sequence[float]
    """Milliseconds that an update took which was alone, in order."""


def _measure(bench: Bench, case: Case, tenant: int, options: argparse.Namespace) -> Figures:
    before = _kept(bench)
    bench.garbage.begin()
    streams = _Streams(bench, case, tenant)
    warm = max(WARM * case.streams, WARM * options.batch)
    bench.take([*streams.definitions, *streams.updates(warm)], options.batch)
    rows = list(streams.updates(options.updates))
    others, processor, clock = bench.others(), time.process_time(), time.perf_counter()
    bench.take(rows, options.batch)
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    theirs = {name: now - others[name] for name, now in bench.others().items()}
    used = {"here": processor, **theirs}
    kept = (_kept(bench) - before) / (case.streams * case.open)
    each = {name: 1e6 * spent / len(rows) for name, spent in used.items()}
    alone = []
    for row in list(streams.updates(options.alone)):
        clock_alone = time.perf_counter()
        bench.take([row], 1)
        alone.append(1e3 * (time.perf_counter() - clock_alone))
    return Figures(len(rows) / clock, each, kept, sorted(alone))


class _Streams:
    """The streams of a case, and the log of their updates, one after the other."""

    def __init__(self, bench: Bench, case: Case, tenant: int) -> None:
        self._bench = bench
        self._case = case
        self._sent = 0
        day = 24 * 3600
        self._first = (int(time.time()) // day + 2) * day
        begun = len(bench.log)
        changes = Changes(bench.graph, bench.change_store, bench)
        self._ids = [f"windows{begun:08d}x{number}" for number in range(case.streams)]
        for id_ in self._ids:
            changes.create(backlog.new(id_, tenant, _document(case)))
        self.definitions = list(_rows(bench.log, begun))

    def updates(self, count: int) -> Iterator[Row]:
        """As many more."""
        begun = len(self._bench.log)
        for at in range(self._sent, self._sent + count):
            self._bench.log.append(write(self._update(at)))
        self._sent += count
        return _rows(self._bench.log, begun)

    def _update(self, at: int) -> UpdateRecord:
        nth, number = divmod(at, len(self._ids))
        # Each a second before the next: so not all windows end together.
        timestamp = 1000 * (self._first + nth + number % 10)
        channels: dict[str, Any] = {"v": {"current-value": 20 + at * 7919 % 1000 / 100}}
        if self._case.sensors:
            channels["sensor"] = {"current-value": f"s{at % self._case.sensors}"}
        body = orjson.dumps({"channels": channels, "lastUpdate": timestamp})
        return UpdateRecord(self._ids[number], "air", timestamp, msgspec.Raw(body), at=timestamp)


def _document(case: Case) -> dict[str, Any]:
    air = {"channels": {"v": {"type": "number"}, "sensor": {"type": "string"}}}
    result: dict[str, Any] = {"channels": {"v": {"type": "number", "current-value": case.code}}}
    if case.window is not None:
        result["window"] = case.window
    return {"version": "0.2.0", "streams": {"air": air, "result": result}}


def _rows(log: Sequence[bytes], begun: int) -> Iterator[Row]:
    return (Row(at, log[at]) for at in range(begun, len(log)))


def _kept(bench: Bench) -> int:
    return int(bench.database.rows(BYTES)[0][0])


def _line(case: Case, found: Figures, without: Figures) -> str:
    used = " ".join(f"{each:7.0f}" for each in found.used.values())
    ratio = sum(found.used.values()) / sum(without.used.values())
    speed = f"{found.speed:9.0f} {found.speed / without.speed:10.2f}"
    at = found.alone or [0.0]
    alone = f"{at[len(at) // 2]:6.1f} {at[len(at) * 99 // 100]:6.1f}"
    return (
        f"{case.streams:7,d} {case.name:30s} | {speed} | {used} {ratio:10.2f} | {alone} | "
        f"{found.kept:7.0f}"
    )
