"""Processor time of an update, stage by stage, in the pipeline's own process.

A `pipeline.task.Task` takes a prepared list of rows: a backlog of updates of devices with
a chain of composites each. The stages are timed by an aspect around them, and so are the
calls of the sandbox, the store and the output; what runs meanwhile in other processes (V8,
Postgres, the broker) is read from their accounts.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import os
import pstats
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from benchmarks import backlog, ground, processes
from benchmarks.stopwatch import Spent, Stopwatch
from pipeline.accounting.accounts import Accounts
from pipeline.accounting.metering import Meter
from pipeline.aspects import STAGES, around
from pipeline.batching.schedule import QUIET_SECONDS
from pipeline.engine import Engine
from pipeline.growth import Verdict
from pipeline.spark import bundles, worker
from pipeline.spark.garbage import Garbage
from pipeline.spark.inbox import Inbox
from pipeline.state.base import Base
from pipeline.state.batch import BatchState
from pipeline.task import Task
from pipeline.work import Row, Work
from sandbox import SandboxPool, argument_names
from servioticy.bootstrap import connect, emitter, sandbox_pool
from servioticy.changes import Changes
from servioticy.domain.evaluators.every import every
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.records import LogRecord, write
from servioticy.ports.change_store import ChangeStore
from servioticy.ports.output import Output
from servioticy.ports.partition_store import PartitionStore
from servioticy.ports.stream_graph import StreamGraph
from servioticy.ports.tenants import Tenants
from servioticy.settings import Settings
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.database import Database
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.roles import Role
from servioticy.storage.stream_graph import PostgresStreamGraph
from servioticy.storage.tenants import PostgresTenants

LENGTH = 3

TASK = "task: read, admit, order, remember"
PARTS = {
    "dispatch": "dispatch: which trees enter which regions",
    "fetch": "fetch: last updates and bounds",
    "transform": "transform: new updates and verdicts",
    "emit": "emit: rows and records",
}
"""The part of each stage's own time."""

SANDBOX = {"grow": "transform: sandbox (V8 runs)"}
STORE = {
    "last_updates": "task: recall last updates (Postgres runs)",
    "store": "emit: store (Postgres runs)",
}
OUTPUT = {"emit": "emit: encode and produce", "poll": "emit: poll acknowledgements"}
"""The parts of what the stages ask of others."""


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print microseconds an update for every stage; with --profile the top functions."""
    parser = argparse.ArgumentParser("servioticy bench stages")
    parser.add_argument("--updates", type=int, default=20_000)
    parser.add_argument("--devices", type=int, default=100)
    parser.add_argument("--batch", type=int, default=1000, help="updates taken at once")
    parser.add_argument("--cold", action="store_true", help="no device is known when it begins")
    parser.add_argument("--profile", metavar="FILE", help="profile too, and keep it here")
    parser.add_argument("--no-accounts", action="store_true", help="nobody is told what it uses")
    parser.add_argument("--no-security", action="store_true", help="rows are nobody's: no roles")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        bench = stack.enter_context(real(settings, options))
        rows = bench.rows(options.devices, options.updates)
        known = options.devices * (1 if options.cold else 3)
        bench.task.take(rows[:known])  # definitions, and some to warm up
        rows = rows[known:]
        bench.garbage.begin()
        _measure(bench, rows, options.batch)
        if not options.no_accounts:
            _settle(bench)
        if options.profile:
            _profile(bench, bench.more(rows), options)


@dataclass
class Bench:
    """A task over some stores, and how to see what other processes use for it."""

    task: Task
    watch: Stopwatch
    tenants: Tenants
    graph: StreamGraph
    change_store: ChangeStore
    others: Callable[[], dict[str, float]]
    database: Database
    broker: str
    """Its address."""
    ids: list[str] = field(default_factory=list)
    log: list[bytes] = field(default_factory=list)
    garbage: Garbage = field(default_factory=Garbage)

    def take(self, rows: Sequence[Row], most: int) -> None:
        """Let the task take these, so many at once."""
        for start in range(0, len(rows), most):
            self.task.take(rows[start : start + most])
            self.garbage.look(computing=False)
        while self.task.patience < QUIET_SECONDS:  # something is put off
            self.task.rest()

    def rows(self, devices: int, updates: int) -> list[Row]:
        """The log: definitions of the devices, then updates of one after the other."""
        tenant = self.tenants.tenant_of(self.tenants.create_tenant("bench"))
        changes = Changes(self.graph, self.change_store, self)
        for number in range(devices):
            self.ids.append(f"bench{number:06d}")
            changes.create(backlog.device(self.ids[-1], tenant or 0, LENGTH))
        self._update(updates + 2 * devices)
        return [Row(offset, value) for offset, value in enumerate(self.log)]

    def more(self, rows: Sequence[Row]) -> list[Row]:
        """As many updates again."""
        self._update(len(rows))
        return [Row(at, self.log[at]) for at in range(len(self.log) - len(rows), len(self.log))]

    def _update(self, count: int) -> None:
        for _ in range(count):
            at = len(self.log)
            self.log.append(write(backlog.update(self.ids[at % len(self.ids)], at)))

    # What `Changes` asks of the log.

    def append(self, _partition: int, record: LogRecord) -> int:
        """Append one record."""
        self.log.append(write(record))
        return len(self.log) - 1

    def append_all(self, records: Sequence[tuple[int, LogRecord]]) -> None:
        """Append each to its partition, in this order."""
        for partition, record in records:
            self.append(partition, record)

    def end_offset(self, _partition: int) -> int:
        """The offset the next record will get."""
        return len(self.log)

    def partitions(self) -> int:
        """There is one."""
        return 1


@contextmanager
def real(settings: Settings, options: argparse.Namespace) -> Iterator[Bench]:
    """A task over a Postgres, a broker and a sandbox that are there for it alone."""
    pool = sandbox_pool(settings)
    with ground.stores(settings) as stores:
        found = stores.settings
        database = connect(found)
        # As the worker's: what can be computed again need not wait for the disk.
        role = None if options.no_security else Role.PIPELINE
        worker_s = connect(found, role, durable=False)
        store = PostgresPartitionStore(worker_s, argument_names)

        def others() -> dict[str, float]:
            used = {
                name: sum(map(processes.processor_seconds, processes.tree(pid)))
                for name, pid in stores.pids.items()
            }
            return {**used, "sandbox": sum(pool.cpu_seconds().values())}

        try:
            output = emitter(found, 0)
            graph, changes = PostgresStreamGraph(database), PostgresChangeStore(database)
            tenants = PostgresTenants(database)
            task, watch = _task(found, pool, store, output, options)
            broker = found.log.bootstrap_servers
            yield Bench(task, watch, tenants, graph, changes, others, database, broker)
            task.end()
        finally:
            pool.close()
            worker_s.close()
            database.close()


def _task(
    settings: Settings,
    pool: SandboxPool,
    store: PartitionStore,
    output: Output,
    options: argparse.Namespace,
) -> tuple[Task, Stopwatch]:
    watch = Stopwatch({TASK: Spent()})
    stages = around(STAGES, lambda name, stage: watch.timed(PARTS[name], stage))
    if options.no_accounts:
        stages = stages._replace(emit=_unaccounted(stages.emit))
    watch.watch(pool, SANDBOX)
    watch.watch(store, STORE)
    watch.watch(output, OUTPUT)
    room = settings.pipeline.head_cache_bytes
    engine = Engine(every(JavaScript(pool)), 10**6, room, stages=stages)
    task = Task(0, store, lambda: output, engine, meter=Meter(pool.program_cpu_seconds))
    watch.watch(task, {"take": TASK})
    return task, watch


class _NoAccounts(Accounts):
    """Accounts in which nothing is noted."""

    def note(self, *_noted: object) -> None:
        """Note nothing."""


def _unaccounted(emit: Any) -> Any:
    """Return the stage that stores and emits, and tells nobody what was used."""
    nothing = _NoAccounts()

    def stage(
        states: Sequence[BatchState],
        endings: Iterable[Verdict],
        work: Work,
        base: Base,
        output: Output,
    ) -> Iterator[None]:
        base.accounts = nothing
        left: Iterator[None] = emit(states, endings, work, base, output)
        return left

    return stage


def _settle(bench: Bench) -> None:
    """Print what it costs to store the accounts, as the worker does every ten seconds."""
    before = bench.others()
    began, processor = time.perf_counter(), time.process_time()
    bench.task.rest()
    clock, processor = time.perf_counter() - began, time.process_time() - processor
    after = bench.others()
    theirs = ", ".join(f"{name} {1000 * (after[name] - before[name]):.1f}" for name in after)
    print(
        f"accounts settled once, ms: clock {1000 * clock:.1f}, processor {1000 * processor:.1f}; "
        f"meanwhile {theirs}"
    )


def _measure(bench: Bench, rows: Sequence[Row], most: int) -> None:
    arrow = _arrow(rows)
    bench.watch.clear()
    before = bench.others()
    memory = processes.memory_megabytes(os.getpid())
    began, processor = time.perf_counter(), time.process_time()
    bench.watch.timed("read: Arrow to rows", worker.read)(arrow, Inbox(sys.maxsize, sys.maxsize))
    bench.take(rows, most)
    clock, processor = time.perf_counter() - began, time.process_time() - processor
    after = bench.others()
    count = len(rows) / 1e6
    print(f"{len(rows)} updates in batches of {most}: {len(rows) / clock:.0f}/s in one process")
    grown = processes.memory_megabytes(os.getpid()) - memory
    print(f"memory of this process: {memory:.0f} MB, and {grown:.1f} more")
    print(f"{'microseconds an update':46s} {'clock':>8s} {'processor':>10s} {'calls/1000':>11s}")
    for name, spent in bench.watch.parts.items():
        calls = 1000 * spent.calls / len(rows)
        own = f"{spent.clock / count:8.2f} {spent.processor / count:10.2f}"
        print(f"  {name:44s} {own} {calls:11.1f}")
    print(f"  {'this process, all threads':44s} {clock / count:8.2f} {processor / count:10.2f}")
    for name in after:
        print(f"  {'meanwhile ' + name:44s} {'':8s} {(after[name] - before[name]) / count:10.2f}")


def _profile(bench: Bench, rows: Sequence[Row], options: argparse.Namespace) -> None:
    profile = cProfile.Profile()
    profile.enable()
    bench.take(rows, options.batch)
    profile.disable()
    profile.dump_stats(options.profile)
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(30)
    print(text.getvalue())


def _arrow(rows: Sequence[Row]) -> Iterator[Any]:
    """The rows as Spark hands them over where many wait: a stream of batches of one bundle."""
    struct = pa.struct([("bundle", pa.binary())])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("row", struct)])) as writer:
        for first in range(0, len(rows), bundles.MAX_RECORDS):
            bundle = bundles.pack(rows[first : first + bundles.MAX_RECORDS])
            row = pa.array([{"bundle": bundle}], struct)
            writer.write_batch(pa.record_batch([row], ["row"]))
    stream = pa.ipc.open_stream(sink.getvalue())
    return (pa.RecordBatch.from_struct_array(batch.column(0)) for batch in stream)
