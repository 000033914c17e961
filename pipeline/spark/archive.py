"""Keeps the classes of Spark and of the embedded broker ready: `python -m pipeline.spark.archive`.

They are those that the pipeline's own query uses, which is run for it once, on a broker of its
own: what is not used then is loaded from the jars at each start.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.spark.java import Starting, class_path
from servioticy.bootstrap import KafkaLog, kafka, make_topics, topics
from servioticy.domain.records import DeletionRecord
from servioticy.embedded import jars, java, shared_classes
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.errors import ServioticyError, SetupError
from servioticy.settings import Settings, changed, load

SECONDS_TO_MAKE = 900
SECONDS_TO_START = 120


def make(settings: Settings) -> None:
    """Make the files where one is missing.

    Without them programs start more slowly, and that is all: so nothing is raised where Java makes
    none.
    """
    runtime = java.find(settings)
    used = {
        "spark": class_path(jars.spark_jars(settings)),
        "kafka": EmbeddedKafka.classes(settings),
    }
    targets = {use: shared_classes.path(use, classes, runtime) for use, classes in used.items()}
    if all(each.exists() for each in targets.values()):
        return
    sys.stderr.write("servioticy: keeping Java's classes ready (a minute, 220 MB)\n")
    new = {use: each.with_name(f".{each.name}.{os.getpid()}") for use, each in targets.items()}
    # They are written when Java ends, which is later than its Python; then the pipe has no writer.
    command = [sys.executable, "-m", "pipeline.spark.archive", *map(str, new.values())]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, timeout=SECONDS_TO_MAKE, check=False)
    for use, file in new.items():
        if file.exists():
            shared_classes.keep(use, file, targets[use])
        else:
            sys.stderr.write(f"servioticy: this Java keeps none; {use} starts more slowly\n")


def _record(settings: Settings, for_spark: Path, for_kafka: Path) -> None:
    """Run a broker and a query as the pipeline's is, so that Java writes both files."""
    with tempfile.TemporaryDirectory(prefix="servioticy-archive-") as folder:
        broker = EmbeddedKafka(Path(folder) / "kafka", settings, recording=for_kafka)
        broker.prepare()
        process = subprocess.Popen(broker.command())
        try:
            _wait(broker.is_ready)
            own = changed(settings, bootstrap_servers=broker.bootstrap_servers, partitions=2)
            make_topics(own)
            KafkaLog(own).append(0, DeletionRecord("nobody"))
            _query(own, Path(folder), for_spark)
        finally:
            process.terminate()
            process.wait(SECONDS_TO_START)


def _query(settings: Settings, scratch: Path, target: Path) -> None:
    """Take one record."""
    # Slow to import, and not needed where the files are there.
    from pipeline.spark import job

    done = scratch / "done"

    def take(batches: Iterator[Any]) -> Iterator[Any]:
        for number, _ in enumerate(batches):
            if number:  # the first says of which partition they are
                done.touch()
            yield from ()

    recording = shared_classes.recording(target)
    # What it has loaded it writes as it ends.
    with Starting(settings, scratch, recording, SECONDS_TO_START) as java:
        with java.known():
            spark = job.session(settings, java.classes, 2, scratch)
        rows = job.rows(spark, kafka(settings), topics(settings).updates, {0: 0, 1: 0})
        query = job.start(rows, take, settings, scratch)
        _wait(lambda: done.exists() or not query.isActive)
        query.stop()
        spark.stop()


def _wait(is_done: Any) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while not is_done():
        if time.monotonic() > deadline:
            raise SetupError("Java does not do what it is to be recorded at")
        time.sleep(0.1)


def main() -> int:
    """Make the files, or with two arguments record what they will have; return an exit code."""
    try:
        if sys.argv[1:]:
            _record(load(), *map(Path, sys.argv[1:]))
        else:
            make(load())
    except ServioticyError as error:
        sys.stderr.write(f"servioticy: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
