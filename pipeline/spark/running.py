"""The one query: started, watched, and started again where it cannot go on by itself."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from monitoring import following
from pipeline.metrics import Lag
from pipeline.spark import job
from pipeline.spark.added import Added
from pipeline.spark.java import Starting
from pipeline.spark.nudging import Nudging
from servioticy.bootstrap import (
    KafkaLog,
    check_log,
    connect,
    kafka,
    log_ends,
    make_topics,
    partition_store,
    topics,
)
from servioticy.errors import SetupError, Unavailable
from servioticy.metrics import Registry
from servioticy.metrics.names import QUERY_STARTS
from servioticy.metrics.processes import OtherProcesses
from servioticy.serving_metrics import serve
from servioticy.settings import Settings
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.roles import Role

log = logging.getLogger("servioticy.pipeline")

ABANDONED_SECONDS = 5.0
"""More than any pause of a worker that waits for a partition, or begins another batch."""

STARTING_SECONDS = 60.0
"""Added while a query starts."""

WARM_SECONDS = 10.0
"""For workers of the next query, while this one goes on."""

SLOTS_SECONDS = 0.2
"""Between two looks at what executors have come."""

SECONDS_OF_A_DAY = 86_400

READY_FILE = "SERVIOTICY_READY_FILE"
"""Environment variable: a file to make once every partition is being worked on."""


def run(
    settings: Settings, stopping: list[int], scratch: Path, java: Starting, metrics: Path
) -> int:
    """Run it until it fails or somebody is `stopping`; return the exit code.

    `metrics` is where workers write down their ports.
    Raises LogLost where the log is not what has been stored of it, Unavailable, SetupError.
    """
    registry = Registry()
    serve(registry, settings, "pipeline")
    registry.add(OtherProcesses(metrics).texts)
    following.begin(settings, "pipeline", None)  # workers tell it
    return _run(settings, stopping, registry, scratch, java)


def _run(
    settings: Settings, stopping: list[int], registry: Registry, scratch: Path, java: Starting
) -> int:
    job.load()
    make_topics(settings)
    database = connect(settings, Role.PIPELINE)
    check_log(settings, database)
    ends, store = log_ends(settings), partition_store(database)
    partitions = ends.partitions()
    days = settings.store.retention_days
    store.keep_for(days * SECONDS_OF_A_DAY or None)
    lag, starts = Lag(ends, registry), registry.counter(QUERY_STARTS)
    nudging = None
    if settings.spark.trigger == "micro-batch":
        nudging = Nudging(KafkaLog(settings), store, ends.end_offset)
    with java.known():
        spark = job.session(settings, java.classes, partitions, scratch)
    log.info("spark_started")
    if settings.spark.master:
        _wait_for_slots(spark, partitions, stopping)
    job.warm(spark, partitions, settings)
    added = Added(ends, lambda: job.slots(spark), partitions)
    try:
        while not stopping:
            check_log(settings, database)
            progress = store.all_progress()
            offsets = {each: progress.get(each, 0) for each in range(added.partitions)}
            query = _start(spark, settings, offsets, scratch)
            starts.inc()
            log.info("query_started", extra={"partitions": len(offsets), "offsets": offsets})
            if _watch(spark, query, store, lag, offsets, stopping, settings, nudging, added):
                return _code(query, settings)
            query.stop()
        return 0
    finally:
        spark.stop()


def _wait_for_slots(spark: Any, partitions: int, stopping: list[int]) -> None:
    """Wait until the executors have room for every partition, each of which has a slot for ever.

    One without a slot would be silently without work. Raises SetupError.
    """
    until = time.monotonic() + STARTING_SECONDS
    while (found := job.slots(spark)) < partitions and not stopping:
        if time.monotonic() > until:
            raise SetupError(
                f"Spark has {found} slots for {partitions} partitions: give its workers more "
                f"cores, or `spark.cores.max` a higher number if it is set"
            )
        time.sleep(SLOTS_SECONDS)


def _start(spark: Any, settings: Settings, offsets: dict[int, int], scratch: Path) -> Any:
    """Start the query as the trigger wants it."""
    of_log = spark, kafka(settings), topics(settings).updates, offsets
    if settings.spark.trigger == "realtime":
        return job.start(job.rows(*of_log), job.working(settings), settings, scratch)
    in_batches = job.working_in_batches(settings)
    return job.start(job.single_rows(*of_log), in_batches, settings, scratch)


def _code(query: Any, settings: Settings) -> int:
    """Tell how the query ended by itself, as the program's exit code."""
    error = query.exception()
    if error is None and settings.spark.trigger == "available-now":
        log.info("log_taken")
        return 0
    log.error("query_ended", extra={"why": str(error)})
    return 1


def _watch(
    spark: Any,
    query: Any,
    store: PostgresPartitionStore,
    lag: Lag,
    offsets: Mapping[int, int],
    stopping: list[int],
    settings: Settings,
    nudging: Nudging | None,
    added: Added,
) -> bool:
    """Whether the query ended by itself; else it is to be stopped, and perhaps started again.

    Spark's task looks at its Python worker only when a row comes: one that died with the
    last row would be missed until then. So who claims the partitions is watched here, and
    whether a Postgres that fell has forgotten what the query will not read again. In batches Spark
    sees for itself whether a task has ended, and nobody claims in between.
    """
    partitions = len(offsets)
    held_at = dict.fromkeys(offsets, time.monotonic() + STARTING_SECONDS)
    stored = dict(offsets)
    whole_at = dict.fromkeys(offsets, time.monotonic())
    ready, in_batches = False, settings.spark.trigger != "realtime"
    while not stopping:
        if query.awaitTermination(0.1 if not ready else 1.0):
            return True
        now = time.monotonic()
        try:
            held, progress, known = store.held(), store.all_progress(), True
        except Unavailable:
            held, progress, known = list(held_at), stored, False
        for each, offset in stored.items():
            if (found := progress.get(each, 0)) >= offset:
                stored[each], whole_at[each] = found, now
        if now - min(whole_at.values()) > ABANDONED_SECONDS:  # else the worker makes up for it
            log.warning("query_starts_again", extra={"why": "stored progress has gone back"})
            return False
        if known and lag.note(stored):  # the start of a query says more
            log.error("query_starts_again", extra={"why": "the log ends before stored progress"})
            return False
        held_at.update(dict.fromkeys(held, now))
        if known and not ready and (len(held) == partitions or in_batches):
            ready = True
            job.put_away(spark)
            _tell_ready()
        if ready and added.look():
            if added.fits_beside and not in_batches:
                # Else all partitions would wait until it has workers, which takes longest.
                job.warm(spark, added.partitions, settings).join(WARM_SECONDS)
            log.info("query_starts_again", extra={"why": "partitions have been added"})
            return False
        if in_batches:
            if nudging is not None:
                with suppress(Unavailable):
                    nudging.look(stored)
            continue
        if job.tasks(spark) < partitions:  # between two Spark batches, until the last has ended
            held_at = {each: max(at, now) for each, at in held_at.items()}
        if now - min(held_at.values()) > ABANDONED_SECONDS:
            log.warning("query_starts_again", extra={"why": "nobody works on a partition"})
            return False
    return False


def _tell_ready() -> None:
    log.info("pipeline_ready")
    if os.environ.get(READY_FILE):
        Path(os.environ[READY_FILE]).write_text("ready\n", encoding="utf-8")
