"""Spark's classes as Java keeps them ready to be mapped: `python -m pipeline.spark.archive`.

To load, verify and link them is half of the processor time of a start of Spark. Java takes no
notice of an archive that does not fit its version or its class path, so none can do harm.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from servioticy.embedded import jars, java
from servioticy.embedded.java import Java
from servioticy.errors import ServioticyError
from servioticy.settings import Settings, load

SECONDS_TO_MAKE = 300
NAME = "servioticy-spark-"


def path(classes: Sequence[Path], runtime: Java) -> Path:
    """Return where the archive is: beside PySpark, as it is for these very files."""
    used = (runtime.executable, java.pyspark_jars(), *classes)
    about = [version("pyspark"), *(f"{each} {each.stat().st_mtime_ns}" for each in used)]
    digest = hashlib.sha256("\n".join(about).encode()).hexdigest()
    return Path(sys.prefix) / f"{NAME}{digest[:12]}.jsa"


def options(classes: Sequence[Path], runtime: Java) -> tuple[str, ...]:
    """Return what Java is told to use the archive; nothing where there is none."""
    archive = path(classes, runtime)
    return (f"-XX:SharedArchiveFile={archive}",) if archive.exists() else ()


def make(settings: Settings) -> None:
    """Make the archive where it is missing, and remove those of other versions.

    Without one Spark starts more slowly, and that is all: so nothing is raised where Java makes
    none.
    """
    target = path(jars.spark_jars(settings), java.find(settings))
    if target.exists():
        return
    sys.stderr.write("servioticy: keeping Spark's classes ready (half a minute, 150 MB)\n")
    new = target.with_name(f".{target.name}.{os.getpid()}")
    # It is written when Java ends, which is later than its Python; then the pipe has no writer.
    command = [sys.executable, "-m", "pipeline.spark.archive", str(new)]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, timeout=SECONDS_TO_MAKE, check=False)
    if not new.exists():
        sys.stderr.write("servioticy: this Java keeps none; Spark starts more slowly\n")
        return
    new.replace(target)
    for other in target.parent.glob(f"{NAME}*.jsa"):
        if other != target:
            other.unlink(missing_ok=True)


def _record(settings: Settings, target: Path) -> None:
    """Run a query as the pipeline's is, so that Java writes the classes down when it ends."""
    # Slow to import, and not needed where the archive is there.
    from pipeline.spark import job

    runtime = java.find(settings)
    os.environ["JAVA_HOME"] = str(runtime.home)
    with tempfile.TemporaryDirectory(prefix="servioticy-archive-") as folder:
        scratch, classes = Path(folder), jars.spark_jars(settings)
        recording = (f"-XX:ArchiveClassesAtExit={target}",)
        spark = job.session(settings, classes, 1, scratch, recording)
        numbers = spark.readStream.format("rate").load()
        rows = job.bundled(numbers.selectExpr("value AS offset", "CAST(value AS BINARY) AS value"))
        sink = rows.mapInArrow(_nothing, "done boolean").writeStream.format("noop")
        query = sink.option("checkpointLocation", str(scratch / "checkpoint")).start()
        while not query.recentProgress and query.isActive:
            query.awaitTermination(0.1)
        query.stop()
        spark.stop()


def _nothing(batches: Iterator[Any]) -> Iterator[Any]:
    for _ in batches:
        yield from ()


def main() -> int:
    """Make the archive, or with an argument record what it will have; return an exit code."""
    try:
        if sys.argv[1:]:
            _record(load(), Path(sys.argv[1]))
        else:
            make(load())
    except ServioticyError as error:
        sys.stderr.write(f"servioticy: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
