"""Records from a real log through a real Spark: what a Python worker gets, and when."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import date
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from confluent_kafka import Producer
from pyspark import SparkContext
from pyspark.errors import PySparkException
from running_platform import until

from functions.files.table_process import file_of
from pipeline.spark import bundles, java, job
from servioticy.bootstrap import kafka
from servioticy.domain.topics import Topics
from servioticy.embedded import jars, setup, shared_classes
from servioticy.embedded.java import find
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.messaging.admin import ensure_topics
from servioticy.settings import Settings, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.timeout(900)

SECONDS = 300.0
LOADED = "loaded-classes"
PARTITIONS = 6
"""More than four: Spark would number the tasks of one source in another order."""
SHORT_SECONDS, LONG_SECONDS = 5, 3600
"""Of a Spark batch: the least that real-time mode takes, and more than the test does."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    settings = load()
    setup.prepare(settings)
    scratch = tmp_path_factory.mktemp("spark")
    classes = java.class_path(jars.spark_jars(settings))
    ready = shared_classes.options("spark", classes, find(settings))
    shown = f"-Xlog:class+load:file={scratch / LOADED}"
    with (
        mock.patch.dict(os.environ),
        java.Starting(settings, scratch, (*ready, shown)) as started,
    ):
        with started.known():
            session = job.session(settings, started.classes, PARTITIONS, scratch)
        yield session
        session.stop()
        gateway = SparkContext._gateway
        assert gateway is not None
        gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None


def test_java_takes_sparks_classes_from_the_archive(spark: SparkSession) -> None:
    """That of `make setup`; one that does not fit would be left out without a word."""
    folder = Path(spark.conf.get("spark.local.dir") or "")
    loaded = (folder / LOADED).read_text("utf-8").splitlines()

    (own,) = [line for line in loaded if " org.apache.spark.SparkContext source: " in line]
    assert "shared objects file (top)" in own


def test_spark_reads_what_a_workflow_has_written_as_parquet(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Here, as a Spark runs: two hours' objects as one table, with day and hour from their names,
    numbers, texts and what is nested."""
    for hour, rows in (
        ("04", b'{"n":1,"t":"a","o":{"x":[1,2]}}\n{"n":2.5,"t":"\xc3\xbc"}'),
        ("05", b'{"n":3.5,"t":"b","o":{"x":[3]}}'),
    ):
        folder = tmp_path / "date=2025-11-27" / f"hour={hour}"
        folder.mkdir(parents=True)
        (folder / "w-1-0.parquet").write_bytes(file_of(rows))

    found = spark.read.parquet(str(tmp_path)).orderBy("n")

    assert [row.asDict(recursive=True) for row in found.collect()] == [
        {"n": n, "t": t, "o": o, "date": date(2025, 11, 27), "hour": hour}
        for n, t, o, hour in (
            (1.0, "a", {"x": [1, 2]}, 4),
            (2.5, "ü", None, 4),
            (3.5, "b", {"x": [3]}, 5),
        )
    ]


def collected(spark: SparkSession, count: int, value: str) -> list[list[bundles.Row]]:
    """Bundles of records numbered from 0, each with the value of an SQL expression of `id`."""
    records = spark.range(0, count, 1, 1).selectExpr("id AS offset", f"{value} AS value")
    head, *rest = (bytes(row[0]) for row in job.bundled(records, count).collect())
    assert bundles.partition(head) == count
    return [bundles.unpack(each) for each in rest]


def readers(spark: SparkSession) -> int:
    """How many threads of ours there are in the JVM."""
    threads = spark._jvm.java.lang.Thread.getAllStackTraces().keySet()
    return sum(each.getName() == "bundle-reader" for each in threads)


def test_every_record_comes_once_in_order_in_bounded_bundles(spark: SparkSession) -> None:
    """A record with no value is not one with an empty value."""
    value = (
        "CASE id % 3 WHEN 0 THEN NULL WHEN 1 THEN X'' ELSE CAST(CAST(id AS STRING) AS BINARY) END"
    )
    found = collected(spark, 20_000, value)

    rows = [row for bundle in found for row in bundle]
    assert [row.offset for row in rows] == list(range(20_000))
    assert [row.value for row in rows[:6]] == [None, b"", b"2", None, b"", b"5"]
    assert max(map(len, found)) <= bundles.MAX_RECORDS
    assert found[-1] == []
    assert all(found[:-1])


@pytest.mark.parametrize("large", [bundles.MAX_BYTES // 3, bundles.MAX_BYTES + 1])
def test_bundles_are_bounded_in_bytes(spark: SparkSession, large: int) -> None:
    """Or hold a single record."""
    found = collected(spark, 60, f"CAST(repeat('x', IF(id % 3 = 0, 1, {large})) AS BINARY)")

    assert [row.offset for bundle in found for row in bundle] == list(range(60))
    assert all(
        len(bundle) < 2 or len(bundles.pack(bundle)) <= bundles.MAX_BYTES for bundle in found
    )


def test_what_stops_the_reading_stops_the_task_with_its_cause(spark: SparkSession) -> None:
    value = "IF(id = 30, CAST(raise_error('the log is gone') AS BINARY), X'00')"

    with pytest.raises(PySparkException, match="the log is gone"):
        collected(spark, 50, value)
    until(lambda: readers(spark) == 0, SECONDS)


def test_a_task_that_wants_no_more_leaves_no_thread(spark: SparkSession) -> None:
    """Its thread waits to hand over the next bundle, as the records are without end."""
    records = spark.range(0, 10**12, 1, 1).selectExpr("id AS offset", "X'00' AS value")

    assert job.bundled(records, 0).limit(2).count() == 2
    until(lambda: readers(spark) == 0, SECONDS)


class Log:
    """A topic, and a query over it that writes down what its Python workers get."""

    def __init__(
        self, spark: SparkSession, settings: Settings, folder: Path, partitions: int = 1
    ) -> None:
        self._spark, self._settings, self._folder = spark, settings, folder
        self._partitions = partitions
        self._topic = Topics(settings.log.topic_prefix).updates
        ensure_topics(kafka(settings), Topics(settings.log.topic_prefix), partitions)
        self._producer = Producer(
            kafka(settings).for_librdkafka() | {"message.max.bytes": 4 << 20}
        )
        self._seen = folder / "seen"
        self._seen.touch()

    def append(self, *values: bytes | None, partition: int = 0) -> None:
        for value in values:
            self._producer.produce(self._topic, value, partition=partition)
        self._producer.flush()

    def query(self, seconds: int, first: int = 0) -> StreamingQuery:
        offsets = dict.fromkeys(range(self._partitions), first)
        source = job.rows(self._spark, kafka(self._settings), self._topic, offsets)
        checkpoint = self._folder / f"checkpoint-{first}"
        return (
            source.mapInArrow(_writing_down(self._seen), "done boolean")
            .writeStream.format("noop")
            .outputMode("update")
            .option("checkpointLocation", str(checkpoint))
            .trigger(realTime=f"{seconds} seconds")
            .start()
        )

    def bundles(self, partition: int = 0) -> list[list[tuple[int, int]]]:
        """Offset and length (-1: no value) of the records of each bundle that has come."""
        lines = [line.split() for line in self._seen.read_text().splitlines()]
        return [
            [tuple(map(int, each.split(":"))) for each in rest]
            for number, *rest in lines
            if int(number) == partition
        ]

    def wait_for(self, records: int) -> None:
        until(lambda: len(self.records()) >= records, SECONDS)

    def wait_for_an_end(self) -> None:
        """Of a Spark batch: its last bundle is empty."""
        ends = self._ends()
        until(lambda: self._ends() > ends, SECONDS)

    def _ends(self) -> int:
        return sum(not bundle for bundle in self.bundles())

    def records(self, partition: int = 0) -> list[tuple[int, int]]:
        return [each for bundle in self.bundles(partition) for each in bundle]


def _writing_down(path: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        values = chain.from_iterable(batch.column(0).to_pylist() for batch in batches)
        partition = str(bundles.partition(next(values)))
        with path.open("a", buffering=1) as seen:
            for bundle in values:
                rows = bundles.unpack(bundle)
                sizes = [-1 if value is None else len(value) for _offset, value in rows]
                pairs = [f"{row.offset}:{size}" for row, size in zip(rows, sizes, strict=True)]
                seen.write(" ".join((partition, *pairs)) + "\n")
        return iter(())

    return run


@pytest.fixture
def log(spark: SparkSession, real_kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> Log:
    overrides = {"bootstrap_servers": real_kafka.bootstrap_servers, "topic_prefix": topic_prefix}
    return Log(spark, load(overrides=overrides), tmp_path)


def test_each_task_knows_its_partition_however_many_there_are(
    spark: SparkSession, real_kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    """Before anything comes, and over the end of a Spark batch."""
    overrides = {"bootstrap_servers": real_kafka.bootstrap_servers, "topic_prefix": topic_prefix}
    log = Log(spark, load(overrides=overrides), tmp_path, PARTITIONS)
    query = log.query(SHORT_SECONDS)
    try:
        for round_ in range(1, 3):
            for partition in range(PARTITIONS):
                log.append(b"x" * partition, partition=partition)
            until(
                lambda round_=round_: all(
                    len(log.records(each)) == round_ for each in range(PARTITIONS)
                ),
                SECONDS,
            )
            log.wait_for_an_end()
    finally:
        query.stop()

    for partition in range(PARTITIONS):
        assert log.records(partition) == [(0, partition), (1, partition)]


def test_a_single_record_waits_for_no_other(log: Log) -> None:
    """Spark would keep it until the next one comes, or its batch ends."""
    query = log.query(LONG_SECONDS)
    try:
        for number in range(5):
            log.append(b"x" * number)
            log.wait_for(number + 1)
    finally:
        query.stop()

    assert log.records() == [(number, number) for number in range(5)]


def test_records_come_once_whatever_they_are_and_whenever(log: Log, spark: SparkSession) -> None:
    """Large ones, none, very many, over the ends of Spark's batches; then from another query."""
    log.append(b"", None, b"x" * 1_000_000, b"y")
    expected = [0, -1, 1_000_000, 1]
    first = log.query(SHORT_SECONDS)
    try:
        for _ in range(4):
            log.wait_for(len(expected))
            log.append(*[b"z" * 100] * 3000, b"x" * 1_000_000)
            expected += [100] * 3000 + [1_000_000]
            log.wait_for(len(expected))
            log.wait_for_an_end()
    finally:
        first.stop()
    until(lambda: readers(spark) == 0, SECONDS)
    second = log.query(LONG_SECONDS, len(expected))
    try:
        log.append(b"again")
        log.wait_for(len(expected) + 1)
        until(lambda: readers(spark) == 1, SECONDS)
    finally:
        second.stop()

    until(lambda: readers(spark) == 0, SECONDS)
    assert log.records() == list(enumerate([*expected, 5]))
    assert len([each for each in log.bundles() if each]) < len(expected) / 2
