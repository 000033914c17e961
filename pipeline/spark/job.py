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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from pipeline.spark import bundles
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
    # A row must not wait for others to fill a buffer.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.pandas.udf.buffer.size": "4",
    # Nor for the next one to be asked for, as in code that is generated for a whole stage.
    "spark.sql.codegen.wholeStage": "false",
    # A task in real-time mode holds its slot for ever and replays nothing stored.
    "spark.task.maxFailures": "4",
    "spark.python.worker.reuse": "true",
    "spark.sql.shuffle.partitions": "1",
}


def session(
    settings: Settings,
    jars: list[Path],
    partitions: int,
    scratch: Path,
    java_options: Sequence[str] = (),
) -> SparkSession:
    """The Spark that the settings name, else a local one.

    What it writes down for itself goes to the scratch folder, to be removed after it. The
    driver's Java gets these options, and those of the settings.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("servioticy")
    chosen = configuration(settings.spark, jars, partitions, scratch, java_options)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


def configuration(
    settings: Spark,
    jars: list[Path],
    partitions: int,
    scratch: Path,
    java_options: Sequence[str] = (),
) -> dict[str, str]:
    """What Spark is told at its start; what the settings say themselves wins.

    A local Spark has room for every partition's task and a spare slot.
    """
    options = [f'"{each}"' for each in (*java_options, f"-Djava.io.tmpdir={scratch}")]
    return {
        "spark.master": settings.master or f"local[{partitions + 1},4]",
        "spark.driver.host": settings.driver_host,
        "spark.driver.bindAddress": settings.driver_host,
        "spark.driver.memory": settings.heap,
        "spark.driver.extraJavaOptions": " ".join((settings.java_options, *options)),
        "spark.driver.extraClassPath": os.pathsep.join(str(each) for each in jars),
        "spark.jars": ",".join(str(each) for each in jars if each.is_file()),
        "spark.local.dir": str(scratch),
        **_SPARK,
        **settings.conf,
    }


def rows(
    spark: SparkSession, connection: KafkaConnection, topic: str, offsets: dict[int, int]
) -> DataFrame:
    """The log from these offsets on, in bundles."""
    source = spark.readStream.format("kafka")
    log = source.options(**source_options(connection, topic, offsets)).load()
    return bundled(log.selectExpr("offset", "value"))


def bundled(records: DataFrame) -> DataFrame:
    """All that waits as one row, by Java classes of ours: a row each costs far more."""
    jvm: Any = records.sparkSession._jvm
    encoders = jvm.org.apache.spark.sql.Encoders
    record = encoders.tuple(encoders.LONG(), encoders.BINARY())
    together = jvm.servioticy.Bundles(bundles.MAX_BYTES, bundles.MAX_RECORDS)
    mapped = getattr(records._jdf, "as")(record).mapPartitions(together, encoders.BINARY())
    return DataFrame(mapped.toDF(), records.sparkSession)


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
