"""The Spark job: one query in real-time mode, one long task a partition of the log.

Spark moves rows; it does not hold the rules. Every setting here is needed, and why is in
docs/decisions/0001-real-time-mode.md. Offsets come from the progress rows in Postgres,
so the checkpoint folder is fresh at every start and worth nothing.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from pipeline.spark.worker import work
from servioticy.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"

_SPARK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    # So that an offset may become bytes.
    "spark.sql.ansi.enabled": "false",
    # A row must not wait for others to fill a buffer.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.pandas.udf.buffer.size": "4",
    # A task in real-time mode holds its slot for ever and replays nothing stored.
    "spark.task.maxFailures": "4",
    "spark.python.worker.reuse": "true",
    "spark.sql.shuffle.partitions": "1",
}


_RECORD = "concat(CAST(offset AS BINARY), coalesce(value, X''))"
"""Eight bytes, big-endian, and what follows; `worker` reads it."""


def session(settings: Settings, jars: list[Path], partitions: int, scratch: Path) -> SparkSession:
    """A local Spark with room for every partition's task and a spare slot.

    What it writes down for itself goes to the scratch folder, to be removed after it.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master(f"local[{partitions + 1},4]")
        .appName("servioticy")
        .config("spark.jars", ",".join(str(each) for each in jars if each.is_file()))
        .config("spark.driver.extraClassPath", os.pathsep.join(str(each) for each in jars))
        .config("spark.driver.memory", settings.spark.heap)
        .config("spark.local.dir", str(scratch))
        .config("spark.driver.extraJavaOptions", f'{_JVM} "-Djava.io.tmpdir={scratch}"')
    )
    for key, value in _SPARK.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


def rows(
    spark: SparkSession, settings: Settings, topic: str, offsets: dict[int, int]
) -> DataFrame:
    """The log from these offsets on: one column, a record's offset and value in one.

    Every record is followed by a null. The JVM holds the newest row back until another
    comes; the null is that other. One column costs half of what two and a flag do.
    """
    starting = {str(partition): offset for partition, offset in offsets.items()}
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.log.bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", json.dumps({topic: starting}))
        .option("kafka.fetch.max.wait.ms", "100")
        .option("kafka.fetch.min.bytes", "1")
        .option("failOnDataLoss", "true")
        .load()
        .selectExpr(f"explode(array({_RECORD}, NULL)) AS record")
    )


def start(source: DataFrame, settings: Settings, scratch: Path) -> StreamingQuery:
    """Start the query; its (worthless) checkpoint goes to the scratch folder."""
    checkpoint = tempfile.mkdtemp(prefix="checkpoint-", dir=scratch)

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        # One task a partition of the one topic, in order: the task's number is the partition's.
        return work(batches, context.partitionId() if context else 0, settings)

    return (
        source.mapInArrow(run, "done boolean")
        .writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", checkpoint)
        .trigger(realTime=f"{settings.spark.batch_seconds} seconds")
        .start()
    )


def tasks(spark: SparkSession) -> int:
    """How many tasks Spark holds to be at work."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
    return sum(stage.numActiveTasks for stage in stages if stage is not None)
