"""The pipeline program: `python -m pipeline`."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.metrics import Lag
from pipeline.spark import archive, job
from servioticy import logs
from servioticy.bootstrap import (
    check_log,
    connect,
    kafka,
    log_ends,
    make_topics,
    partition_store,
    topics,
)
from servioticy.embedded import jars, java, javascript
from servioticy.errors import ServioticyError, SettingsError, Unavailable
from servioticy.metrics import Registry, serve, shared
from servioticy.metrics.names import QUERY_STARTS
from servioticy.settings import Settings, load
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.roles import Role

log = logging.getLogger("servioticy.pipeline")

ABANDONED_SECONDS = 5.0
"""More than any pause of a worker that waits for a partition, or begins another batch."""

STARTING_SECONDS = 60.0
"""Added while a query starts."""

READY_FILE = "SERVIOTICY_READY_FILE"
"""Environment variable: a file to make once every partition is being worked on."""


def main() -> int:
    """Run the query until it fails or a signal ends it; the exit code says which."""
    stopping: list[int] = []
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda number, _frame: stopping.append(number))
    try:
        settings = load()
        logs.configure(settings.log_level)
        registry = Registry()
        serve(registry, settings.metrics_host, settings.pipeline.metrics_port)
        with shared(registry):
            return _run(settings, stopping, registry)
    except SettingsError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except ServioticyError as error:
        log.error("pipeline_stops", extra={"why": str(error)})
        return 1


def _run(settings: Settings, stopping: list[int], registry: Registry) -> int:
    # Or each of Spark's workers would fail.
    javascript.require(settings, settings.sandbox.engine)
    make_topics(settings)
    database = connect(settings, Role.PIPELINE)
    check_log(settings, database)  # before Spark starts: that takes its time
    ends, store = log_ends(settings), partition_store(database)
    partitions = ends.partitions()
    lag, starts = Lag(ends, registry), registry.counter(QUERY_STARTS)
    runtime, classes = java.find(settings), jars.spark_jars(settings)
    os.environ["JAVA_HOME"] = str(runtime.home)
    ready = archive.options(classes, runtime)
    with _scratch() as scratch:
        spark = job.session(settings, classes, partitions, scratch, ready)
        try:
            while not stopping:
                check_log(settings, database)
                progress = store.all_progress()
                offsets = {each: progress.get(each, 0) for each in range(partitions)}
                source = job.rows(spark, kafka(settings), topics(settings).updates, offsets)
                query = job.start(source, settings, scratch)
                starts.inc()
                log.info("query_started", extra={"partitions": partitions, "offsets": offsets})
                if _watch(spark, query, store, lag, offsets, stopping):
                    return 1
                query.stop()
            return 0
        finally:
            spark.stop()


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for what Spark writes down: all of it is of use to this run only."""
    folder = Path(tempfile.mkdtemp(prefix="servioticy-pipeline-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watch(
    spark: Any,
    query: Any,
    store: PostgresPartitionStore,
    lag: Lag,
    offsets: Mapping[int, int],
    stopping: list[int],
) -> bool:
    """Whether the query ended by itself; else it is to be stopped, and perhaps started again.

    Spark's task looks at its Python worker only when a row comes: one that died with the
    last row would be missed until then. So who claims the partitions is watched here, and
    whether a Postgres that fell has forgotten what the query will not read again.
    """
    partitions = len(offsets)
    held_at = dict.fromkeys(offsets, time.monotonic() + STARTING_SECONDS)
    stored = dict(offsets)
    ready = False
    while not stopping:
        if query.awaitTermination(0.1 if not ready else 1.0):
            log.error("query_ended", extra={"why": str(query.exception())})
            return True
        now = time.monotonic()
        try:
            held, progress, known = store.held(), store.all_progress(), True
        except Unavailable:
            held, progress, known = list(held_at), stored, False
        if any(progress.get(each, 0) < offset for each, offset in stored.items()):
            log.warning("query_starts_again", extra={"why": "stored progress has gone back"})
            return False
        stored.update(progress)
        if known and lag.note(stored):  # the start of a query says more
            log.error("query_starts_again", extra={"why": "the log ends before stored progress"})
            return False
        held_at.update(dict.fromkeys(held, now))
        if known and not ready and len(held) == partitions:
            ready = True
            _tell_ready()
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


if __name__ == "__main__":
    sys.exit(main())
