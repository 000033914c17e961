"""Processor time of an update, stage by stage, in the pipeline's own process.

A `pipeline.task.Task` takes a prepared list of rows: a backlog of updates of devices with
a chain of composites each. Every stage is timed from outside; what runs meanwhile in other
processes (V8, Postgres, the broker) is read from their accounts. Against the real stores
or the twins in memory.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pipeline.intake import Row
from pipeline.spark import worker
from pipeline.spark.inbox import Inbox
from pipeline.task import Task
from sandbox import SandboxPool, argument_names
from servioticy.bootstrap import connect, emitter
from servioticy.changes import Changes
from servioticy.domain.records import LogRecord, write
from servioticy.memory import MemoryPlatform
from servioticy.ports.change_store import ChangeStore
from servioticy.ports.stream_graph import StreamGraph
from servioticy.ports.tenants import Tenants
from servioticy.settings import Settings
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.stream_graph import PostgresStreamGraph
from servioticy.storage.tenants import PostgresTenants
from servioticy.tools.bench import backlog, ground, processes
from servioticy.tools.bench.stopwatch import Stopwatch

LENGTH = 3

STAGES = {
    "pipeline.spark.worker:_read": "read: Arrow to rows (1-row batches)",
    "pipeline.schedule:Schedule.take": "read: take, make the batch",
    "pipeline.intake:read_record": "read: parse the record",
    "pipeline.intake:Intake.admit": "read: admit",
    "pipeline.process:process": "process: order the work",
    "pipeline.process:_accept": "process: accept into the journal",
    "pipeline.partition:Partition.recall": "process: recall last updates",
    "servioticy.domain.graph:Graph.reachable": "process: graph, reachable",
    "servioticy.domain.graph:Graph.levels": "process: graph, levels",
    "pipeline.process:dispatch": "dispatch: pair with composites",
    "pipeline.stages.dispatch:Waiting.take": "dispatch: sort a turn",
    "pipeline.process:fetch": "fetch: inputs of computations",
    "pipeline.process:transform": "transform: note outcomes",
    "sandbox.host.pool:SandboxPool.run": "transform: pool",
    "sandbox.host.worker_client:encode_calls": "transform: encode the frame",
    "sandbox.host.worker_client:Client._ask": "transform: round trip (V8 runs)",
    "sandbox.host.worker_client:decode_answer": "transform: decode the answer",
    "pipeline.process:emit": "store: emit, the rest (sorts, records)",
    "pipeline.stages.emit:_updates": "store: rows of updates",
    "pipeline.stages.emit:_lasts": "store: rows of last updates",
    "pipeline.stages.emit:_verdicts": "store: rows of verdicts",
    "servioticy.storage.partition_store:_values": "store: columns",
    "servioticy.storage.database:Database._run": "store: statement (Postgres runs)",
    "servioticy.memory.partition_store:MemoryPartitionStore.store": "store: twin in memory",
    "pipeline.partition:Partition.remember": "store: remember last updates",
    "servioticy.messaging.producer:Emitter.emit": "emit: encode and produce",
    "servioticy.messaging.producer:Emitter.poll": "emit: poll acknowledgements",
    "servioticy.memory.output:MemoryOutput.emit": "emit: twin in memory",
}


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print microseconds an update for every stage; with --profile the top functions."""
    parser = argparse.ArgumentParser("servioticy bench stages")
    parser.add_argument("--updates", type=int, default=20_000)
    parser.add_argument("--devices", type=int, default=100)
    parser.add_argument("--batch", type=int, default=1000, help="updates taken at once")
    parser.add_argument("--memory", action="store_true", help="the twins, not the real stores")
    parser.add_argument("--profile", metavar="FILE", help="profile too, and keep it here")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        enter = _twins if options.memory else _real
        bench = stack.enter_context(enter(settings))
        rows = bench.rows(options.devices, options.updates)
        bench.task.take(rows[: options.devices * 3])  # definitions, and some to warm up
        rows = rows[options.devices * 3 :]
        worker.collect_rarely()
        _measure(bench, rows, options.batch)
        if options.profile:
            _profile(bench, bench.more(rows), options)


@dataclass
class Bench:
    """A task over some stores, and how to see what other processes use for it."""

    task: Task
    tenants: Tenants
    graph: StreamGraph
    change_store: ChangeStore
    others: Callable[[], dict[str, float]]
    ids: list[str] = field(default_factory=list)
    log: list[bytes] = field(default_factory=list)

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

    def end_offset(self, _partition: int) -> int:
        """The offset the next record will get."""
        return len(self.log)

    def partitions(self) -> int:
        """There is one."""
        return 1


@contextmanager
def _real(settings: Settings) -> Iterator[Bench]:
    pool = SandboxPool(settings.script_budget_ms, settings.script_budget_ms_per_update)
    with ground.stores(settings) as stores:
        found = stores.settings
        database = connect(found)
        store = PostgresPartitionStore(database, argument_names)

        def others() -> dict[str, float]:
            used = {
                name: sum(map(processes.processor_seconds, processes.tree(pid)))
                for name, pid in stores.pids.items()
            }
            return {**used, "sandbox": sum(pool.cpu_seconds().values())}

        try:
            task = Task(0, store, pool, lambda: emitter(found, 0), 10**6, 10**6)
            yield Bench(
                task,
                PostgresTenants(database),
                PostgresStreamGraph(database),
                PostgresChangeStore(database),
                others,
            )
            task.end()
        finally:
            pool.close()
            database.close()


@contextmanager
def _twins(settings: Settings) -> Iterator[Bench]:
    pool = SandboxPool(settings.script_budget_ms, settings.script_budget_ms_per_update)
    platform = MemoryPlatform()
    store = platform.partition_store(argument_names)
    try:
        task = Task(0, store, pool, lambda: platform.output(0), 10**6, 10**6)
        yield Bench(
            task,
            platform.tenants,
            platform.graph,
            platform.change_store,
            lambda: {"sandbox": sum(pool.cpu_seconds().values())},
        )
    finally:
        pool.close()


def _measure(bench: Bench, rows: Sequence[Row], most: int) -> None:
    watch = Stopwatch()
    arrow = _arrow(rows)
    with watch.on(STAGES):
        before = bench.others()
        began, processor = time.perf_counter(), time.process_time()
        worker._read(arrow, Inbox(sys.maxsize, sys.maxsize))
        for start in range(0, len(rows), most):
            bench.task.take(rows[start : start + most])
        clock, processor = time.perf_counter() - began, time.process_time() - processor
        after = bench.others()
    count = len(rows) / 1e6
    print(f"{len(rows)} updates in batches of {most}: {len(rows) / clock:.0f}/s in one process")
    print(f"{'microseconds an update':46s} {'clock':>8s} {'processor':>10s} {'calls/1000':>11s}")
    for name, spent in watch.parts.items():
        if spent.calls:
            calls = 1000 * spent.calls / len(rows)
            own = f"{spent.clock / count:8.2f} {spent.processor / count:10.2f}"
            print(f"  {name:44s} {own} {calls:11.1f}")
    print(f"  {'this process, all threads':44s} {clock / count:8.2f} {processor / count:10.2f}")
    for name in after:
        print(f"  {'meanwhile ' + name:44s} {'':8s} {(after[name] - before[name]) / count:10.2f}")
    for name in watch.missing:
        print(f"  (no longer there: {name})")


def _profile(bench: Bench, rows: Sequence[Row], options: argparse.Namespace) -> None:
    profile = cProfile.Profile()
    profile.enable()
    for start in range(0, len(rows), options.batch):
        bench.task.take(rows[start : start + options.batch])
    profile.disable()
    profile.dump_stats(options.profile)
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(30)
    print(text.getvalue())


def _arrow(rows: Sequence[Row]) -> Iterator[Any]:
    """The rows as Spark hands them over: a stream of batches of one, each followed by a null."""
    struct = pa.struct([("record", pa.binary())])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("row", struct)])) as writer:
        for offset, value in rows:
            for record in (worker.OFFSET.pack(offset) + (value or b""), None):
                row = pa.array([{"record": record}], struct)
                writer.write_batch(pa.record_batch([row], ["row"]))
    stream = pa.ipc.open_stream(sink.getvalue())
    return (pa.RecordBatch.from_struct_array(batch.column(0)) for batch in stream)
