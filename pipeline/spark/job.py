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
from servioticy.messaging.connection import KafkaConnection
from servioticy.settings import Settings
from servioticy.settings.sections import Spark

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_SPARK = {
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
    """The Spark that the settings name, else a local one.

    What it writes down for itself goes to the scratch folder, to be removed after it.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("servioticy")
    for key, value in configuration(settings.spark, jars, partitions, scratch).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


def configuration(
    settings: Spark, jars: list[Path], partitions: int, scratch: Path
) -> dict[str, str]:
    """What Spark is told at its start; what the settings say themselves wins.

    A local Spark has room for every partition's task and a spare slot.
    """
    return {
        "spark.master": settings.master or f"local[{partitions + 1},4]",
        "spark.driver.host": settings.driver_host,
        "spark.driver.bindAddress": settings.driver_host,
        "spark.driver.memory": settings.heap,
        "spark.driver.extraJavaOptions": f'{settings.java_options} "-Djava.io.tmpdir={scratch}"',
        "spark.driver.extraClassPath": os.pathsep.join(str(each) for each in jars),
        "spark.jars": ",".join(str(each) for each in jars if each.is_file()),
        "spark.local.dir": str(scratch),
        **_SPARK,
        **settings.conf,
    }


def rows(
    spark: SparkSession, connection: KafkaConnection, topic: str, offsets: dict[int, int]
) -> DataFrame:
    """The log from these offsets on: one column, a record's offset and value in one.

    Every record is followed by a null. The JVM holds the newest row back until another
    comes; the null is that other. One column costs half of what two and a flag do.
    """
    return (
        spark.readStream.format("kafka")
        .options(**source_options(connection, topic, offsets))
        .load()
        .selectExpr(f"explode(array({_RECORD}, NULL)) AS record")
    )


def source_options(
    connection: KafkaConnection, topic: str, offsets: dict[int, int]
) -> dict[str, str]:
    """The options of Spark's Kafka source. They hold secrets."""
    starting = {str(partition): offset for partition, offset in offsets.items()}
    return {
        **{f"kafka.{key}": value for key, value in connection.for_java().items()},
        "subscribe": topic,
        "startingOffsets": json.dumps({topic: starting}),
        "kafka.fetch.max.wait.ms": "100",
        "kafka.fetch.min.bytes": "1",
        "failOnDataLoss": "true",
    }


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
