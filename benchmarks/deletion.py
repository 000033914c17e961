"""How long a partition is held by the deletion of a long history, and until it is gone.

A `pipeline.task.Task` over the real stores takes one update after the other of a device
while another Service Object, whose one stream has a long history, is deleted; or the history
alone is erased. A hold is what one call of the task takes: so long the others wait.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks import backlog, ground
from pipeline.engine import Engine
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.bootstrap import connect, emitter, sandbox_pool
from servioticy.changes import Changes
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.model import ServiceObjectKey
from servioticy.domain.records import LogRecord, write
from servioticy.settings import Settings
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.database import Database
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.stream_graph import PostgresStreamGraph
from servioticy.storage.tenants import PostgresTenants

FILL = """
INSERT INTO updates (tenant_id, stream_id, "timestamp", document, version,
                     log_partition, log_offset, log_position)
SELECT streams.tenant_id, streams.id, n,
       format('{"channels":{"v":{"current-value":%%s}},"lastUpdate":%%s}', n, n)::json, 1, 0, 0, 0
  FROM streams, generate_series(1, %(rows)s) AS n
 WHERE service_object = %(id)s
"""
LOOK_SECONDS = 0.25
ALONE_SECONDS = 10.0


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print the longest holds of each kind, with updates coming and without."""
    parser = argparse.ArgumentParser("servioticy bench deletion")
    parser.add_argument("--rows", type=int, default=600_000, help="of the history that goes")
    options = parser.parse_args(arguments)
    with ground.stores(settings) as stores:
        pool = sandbox_pool(settings)
        database = connect(stores.settings)
        pipeline = connect(stores.settings, durable=False)
        try:
            store = PostgresPartitionStore(pipeline, argument_names)
            task = Task(
                0,
                store,
                lambda: emitter(stores.settings, 0),
                Engine({"javascript": JavaScript(pool)}, 1000, 10**6),
            )
            bench = Bench(task, database)
            bench.alone()
            for kind in ("deletion", "erasure"):
                for busy in (True, False):
                    bench.measure(kind, busy, options.rows)
            task.end()
        finally:
            pool.close()
            pipeline.close()
            database.close()


class Bench:
    """A task, the log that it takes, and a device whose updates come in between."""

    def __init__(self, task: Task, database: Database) -> None:
        self._task = task
        self._database = database
        tenants = PostgresTenants(database)
        self._tenant = tenants.tenant_of(tenants.create_tenant("bench")) or 0
        graph, change_store = PostgresStreamGraph(database), PostgresChangeStore(database)
        self._changes = Changes(graph, change_store, self)
        self._log: list[bytes] = []
        self._taken = 0
        self._changes.create(backlog.device("device", self._tenant, 0))
        self._work()

    def alone(self) -> None:
        """Print how long the task is held by the device alone: what the machine does to it."""
        until = time.perf_counter() + ALONE_SECONDS
        holds = []
        while time.perf_counter() < until:
            holds.append(_timed(self._busy))
        print(f"nothing deleted, updates coming: {_told(holds)}", flush=True)

    def measure(self, kind: str, busy: bool, rows: int) -> None:
        """Make a history, let it go, and print how long the task was held."""
        id_ = f"{kind}{busy}"
        self._changes.create(backlog.device(id_, self._tenant, 0))
        self._work()
        self._database.rows(FILL, {"id": id_, "rows": rows})
        self._database.rows("VACUUM ANALYZE updates")
        if kind == "deletion":
            self._changes.delete(ServiceObjectKey(self._tenant, id_), None, 0)
        else:
            self._changes.erase(ServiceObjectKey(self._tenant, id_), "s0")
        first = _timed(self._work)
        began = time.perf_counter()
        holds = list(self._until_gone(self._busy if busy else self._task.rest))
        seconds = time.perf_counter() - began
        print(
            f"{kind} of {rows} rows, {'updates coming' if busy else 'quiet'}: the record "
            f"{1000 * first:.1f} ms, then {_told(holds)}; gone after {seconds:.1f} s",
            flush=True,
        )

    def _until_gone(self, work: Callable[[], None]) -> Iterator[float]:
        looked = time.perf_counter()
        while True:
            yield _timed(work)
            if time.perf_counter() - looked > LOOK_SECONDS:
                found = "SELECT EXISTS (SELECT FROM updates WHERE log_offset = 0)"
                if not self._database.rows(found)[0][0]:
                    return
                looked = time.perf_counter()

    def _busy(self) -> None:
        self._log.append(write(backlog.update("device", len(self._log))))
        self._work()

    def _work(self) -> None:
        rows = [Row(at, self._log[at]) for at in range(self._taken, len(self._log))]
        self._taken = len(self._log)
        self._task.take(rows)

    # What `Changes` asks of the log.

    def append(self, _partition: int, record: LogRecord) -> int:
        """Append one record."""
        self._log.append(write(record))
        return len(self._log) - 1

    def append_all(self, records: Sequence[tuple[int, LogRecord]]) -> None:
        """Append each to its partition, in this order."""
        for partition, record in records:
            self.append(partition, record)

    def end_offset(self, _partition: int) -> int:
        """The offset the next record will get."""
        return len(self._log)

    def partitions(self) -> int:
        """There is one."""
        return 1


def _told(holds: Sequence[float]) -> str:
    p50, p99 = (1000 * ground.percentile(holds, part) for part in (0.5, 0.99))
    return f"p50 {p50:.1f} p99 {p99:.1f} max {1000 * max(holds):.1f} ms"


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
