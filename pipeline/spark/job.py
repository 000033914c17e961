"""The Spark job: one query, in real-time mode one long task a partition of the log.

Spark moves rows; it does not hold the rules. Offsets come from the progress rows in Postgres,
so the checkpoint folder is fresh at every start and worth nothing.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from py4j.protocol import INPUT_CONVERTER
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.utils import require_minimum_pandas_version
from pyspark.sql.types import BooleanType, StructField, StructType

from pipeline.spark import bundles, worker
from pipeline.spark.configuration import configuration
from pipeline.spark.here import here
from servioticy.messaging.connection import KafkaConnection
from servioticy.settings import Settings
from servioticy.settings.sections import Spark

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_DONE = StructType([StructField("done", BooleanType())])

Run: TypeAlias = Callable[[Iterator[Any]], Iterator[Any]]
"""What a task does with its rows, as they come; it returns none."""


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
    builder = SparkSession.builder.appName("servioticy")
    chosen = configuration(settings.spark, jars, partitions, scratch, java_options)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # PySpark looks only here for what Spark calls `spark.pyspark.python`.
    os.environ["PYSPARK_PYTHON"] = chosen.get("spark.pyspark.python", sys.executable)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


def load() -> None:
    """Load what PySpark loads only when the query is made, which Java would wait for.

    Each value that goes to Java is looked at, whether it is one of numpy's, by functions that load
    PySpark's own tests. None is.
    """
    INPUT_CONVERTER[:] = [each for each in INPUT_CONVERTER if "Numpy" not in type(each).__name__]
    # What fails is met again by whoever needs it.
    threading.Thread(target=require_minimum_pandas_version, name="load", daemon=True).start()


def warm(spark: SparkSession, partitions: int, settings: Settings) -> threading.Thread:
    """Have Spark start its Python workers, and these what they need, while the query is planned.

    Nothing has to wait for the thread that does it, and what fails is met by the query.
    """

    def prepare(_rows: Iterator[Any]) -> None:
        worker.prepare(here(settings))

    def run() -> None:
        with suppress(Exception):
            # Its first error, that there is no batch yet, has all of its messages read.
            jvm: Any = spark._jvm
            jvm.org.apache.spark.SparkThrowableHelper.isInternalError("")
            spark.sparkContext.parallelize(range(partitions), partitions).foreachPartition(prepare)

    thread = threading.Thread(target=run, name="warm", daemon=True)
    thread.start()
    return thread


def put_away(spark: SparkSession) -> None:
    """Have Java look through all that its start has left, now that nobody waits yet.

    It would when so much more is allocated, some half a minute later, and copy what has come to
    stay: 80 to 180 ms in which no row of anybody gets on. Afterwards only what is under way is
    copied.
    """
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()


def rows(
    spark: SparkSession, connection: KafkaConnection, topic: str, offsets: dict[int, int]
) -> DataFrame:
    """The log from these offsets on, in bundles.

    Each partition is a source of its own, which knows what it is: of one source for all of them
    Spark gives the tasks numbers in an order of its own where there are more than four.
    """
    own = (
        bundled(_log(spark, connection, topic, {each: offset}).select("offset", "value"), each)
        for each, offset in offsets.items()
    )
    return reduce(DataFrame.union, own)


def single_rows(
    spark: SparkSession, connection: KafkaConnection, topic: str, offsets: dict[int, int]
) -> DataFrame:
    """The log from these offsets on, for batches: each row says of which partition it is.

    A batch has no task for a partition of which nothing has come, so tasks have other numbers.
    """
    return _log(spark, connection, topic, offsets).select("partition", "offset", "value")


def _log(
    spark: SparkSession, connection: KafkaConnection, topic: str, offsets: dict[int, int]
) -> DataFrame:
    source = spark.readStream.format("kafka")
    return source.options(**source_options(connection, topic, offsets)).load()


def bundled(records: DataFrame, partition: int) -> DataFrame:
    """First which partition it is, then all that waits as one row: a row each costs far more.

    By Java classes of ours.
    """
    jvm: Any = records.sparkSession._jvm
    encoders = jvm.org.apache.spark.sql.Encoders
    record = encoders.tuple(encoders.LONG(), encoders.BINARY())
    together = jvm.servioticy.Bundles(partition, bundles.MAX_BYTES, bundles.MAX_RECORDS)
    mapped = getattr(records._jdf, "as")(record).mapPartitions(together, encoders.BINARY())
    return DataFrame(mapped.toDF(), records.sparkSession)


def source_options(
    connection: KafkaConnection, topic: str, offsets: dict[int, int]
) -> dict[str, str]:
    """The options of Spark's Kafka source. They hold secrets."""
    starting = {str(partition): offset for partition, offset in offsets.items()}
    return {
        **{f"kafka.{key}": value for key, value in connection.for_java().items()},
        "assign": json.dumps({topic: [*offsets]}),
        "startingOffsets": json.dumps({topic: starting}),
        "kafka.fetch.max.wait.ms": "100",
        "kafka.fetch.min.bytes": "1",
        "failOnDataLoss": "true",
    }


def working(settings: Settings) -> Run:
    """Return what takes the rows of one task."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        return worker.work_in_bundles(batches, here(settings))

    return run


def working_in_batches(settings: Settings) -> Run:
    """Return what takes the single rows of one task of a batch."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        return worker.work_in_batches(batches, here(settings))

    return run


def start(source: DataFrame, run: Run, settings: Settings, scratch: Path) -> StreamingQuery:
    """Start the query; its (worthless) checkpoint goes to the scratch folder."""
    checkpoint = tempfile.mkdtemp(prefix="checkpoint-", dir=scratch)
    return (
        source.mapInArrow(run, _DONE)
        .writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", checkpoint)
        .trigger(**_trigger(settings.spark))
        .start()
    )


def _trigger(settings: Spark) -> dict[str, Any]:
    if settings.trigger == "available-now":
        return {"availableNow": True}
    if settings.trigger == "micro-batch":
        return {"processingTime": "0 seconds"}
    return {"realTime": f"{settings.batch_seconds} seconds"}


def slots(spark: SparkSession) -> int:
    """How many tasks can be at work at once on the executors that have come."""
    jvm_context: Any = spark.sparkContext._jsc
    known = jvm_context.sc().statusStore().executorList(True)
    return sum(known.apply(number).totalCores() for number in range(known.size()))


def tasks(spark: SparkSession) -> int:
    """How many tasks Spark holds to be at work."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
    return sum(stage.numActiveTasks for stage in stages if stage is not None)
