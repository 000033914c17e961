"""Inside Spark's Python worker: from the task's endless rows to a Task's batches.

A reader thread drains what Spark hands over; the main thread takes all that waits, so a
batch is one update when it is quiet and hundreds when it is not.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Iterable, Iterator
from functools import cache
from queue import Empty, SimpleQueue
from struct import Struct
from typing import Any

from pipeline import quickack
from pipeline.metering import Meter
from pipeline.stages.dispatch import Limits
from pipeline.task import Row, Task
from sandbox import InfraError, SandboxPool, argument_names
from servioticy import logs
from servioticy.bootstrap import connect, emitter
from servioticy.errors import Unavailable
from servioticy.settings import Settings
from servioticy.storage.partition_store import PostgresPartitionStore

OFFSET = Struct(">q")
"""What precedes the value of a record."""

REST_SECONDS = 1.0
MOST_WAITING = 20_000
"""Rows taken from Spark ahead of the work; a backlog stays in the log, not in memory."""

Inbox = SimpleQueue[Row | None]


def work(batches: Iterable[Any], partition: int, settings: Settings) -> Iterator[Any]:
    """Take every row of one Spark task; yields nothing, and returns when Spark says so.

    Raises Fenced where another worker has the partition, Rewound where rows are missing, and
    what the reading raised.
    """
    quickack.connections()  # before there are others
    inbox: Inbox = SimpleQueue()
    failures: list[BaseException] = []
    reader = threading.Thread(
        target=_read, args=(batches, inbox, failures), name="row-reader", daemon=True
    )
    reader.start()
    task = _task(partition, settings)
    try:
        task.take(())
        for rows in _waiting(inbox, settings.max_batch_updates):
            if rows:
                task.take(rows)
            else:
                task.rest()
        task.end()
    finally:
        task.release()
    if failures:
        raise failures[0]
    return iter(())


def _read(batches: Iterable[Any], inbox: Inbox, failures: list[BaseException]) -> None:
    """Hand over the records: every second row is none (see job.rows)."""
    try:
        for batch in batches:
            quickack.acknowledge()
            for record in batch.column(0).to_pylist():
                if record is not None:
                    inbox.put(Row(OFFSET.unpack_from(record)[0], record[OFFSET.size :]))
            while inbox.qsize() > MOST_WAITING:
                time.sleep(0.01)  # the socket fills, and Spark waits in its turn
    except BaseException as error:  # noqa: BLE001  raised again by the main thread
        failures.append(error)
    finally:
        inbox.put(None)


def _waiting(inbox: Inbox, most: int) -> Iterator[list[Row]]:
    """All that waits, up to a bound; an empty list where nothing came for a while."""
    while True:
        rows: list[Row] = []
        with contextlib.suppress(Empty):
            item = inbox.get(timeout=REST_SECONDS)
            while item is not None:
                rows.append(item)
                if len(rows) >= most:
                    break
                item = inbox.get_nowait()
            if item is None:
                if rows:
                    yield rows
                return
        yield rows


@cache
def _task(partition: int, settings: Settings) -> Task:
    """The task of a partition, kept between Spark batches with what it remembers."""
    logs.configure(settings.log_level)
    # What is stored here can be computed again from the log, so it need not wait for the disk.
    store = PostgresPartitionStore(connect(settings, durable=False), argument_names)
    task = Task(
        partition,
        store,
        _sandbox(settings),
        lambda: emitter(settings, partition),
        settings.max_batch_updates,
        settings.head_cache_streams,
        Limits(settings.max_hops, settings.max_computations),
        retried=(Unavailable, InfraError),
        meter=_meter(settings),
    )
    collect_rarely()
    return task


def collect_rarely() -> None:
    """Set garbage collection as the engine wants it."""
    # Spark's worker daemon collects everything after each task; what we keep is not garbage.
    gc.collect()
    gc.freeze()
    # A batch is thousands of small tuples that die together, and no cycles: a quarter of the
    # engine's time would go into looking for some.
    gc.set_threshold(100_000, 50, 50)


@cache
def _sandbox(settings: Settings) -> SandboxPool:
    return SandboxPool(
        budget_ms=settings.script_budget_ms,
        budget_ms_per_update=settings.script_budget_ms_per_update,
        max_workers=settings.sandbox_workers,
        unprotected=settings.sandbox_protection == "any",
        engine=settings.sandbox_engine,
    )


@cache
def _meter(settings: Settings) -> Meter:
    return Meter(_sandbox(settings).program_cpu_seconds)
