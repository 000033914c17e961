"""The platform's own Java, woven at its start: the broker, and the one of Spark."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from waiting import until

from monitoring import java_start, status
from monitoring.applications.java_reading import Reading
from monitoring.model import Measurement, Node, RuntimePerformance
from pipeline.spark.java import Starting
from servioticy.embedded.folder import DataFolder
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.settings import Settings, changed, load, to_environment
from servioticy.supervisor.process import Child, Guard
from servioticy.supervisor.program import Program

START_SECONDS = 300.0
ASPECTS = """
[[aspect]]
language = "java"
pointcut = "kafka.server.KafkaApis.handle"
purpose = "requests"

[[aspect]]
language = "java"
pointcut = "py4j.GatewayServer.start"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    found = changed(load(), data=str(tmp_path / "data"))
    found.data_path.mkdir()
    (found.data_path / "aspects.toml").write_text(ASPECTS)
    return found


@pytest.fixture
def folder(settings: Settings) -> Iterator[DataFolder]:
    made = DataFolder(settings.data_path)
    yield made
    made.release()


def purposes(settings: Settings) -> Sequence[str]:
    """Of what is stored by now."""
    file = settings.data_path / "monitoring/measurements/java-measurements.ndjson"
    lines = file.read_bytes().splitlines() if file.exists() else []
    found = [msgspec.json.decode(each, type=Measurement) for each in lines]
    return [each.node.node_purpose for each in found if isinstance(each, RuntimePerformance)]


def logged(caplog: pytest.LogCaptureFixture) -> Sequence[str]:
    """The purposes of what is told to the log."""
    found = [each.__dict__.get("measurement") for each in caplog.records]
    return [each["node"]["nodePurpose"] for each in found if each is not None]


def woven(settings: Settings) -> dict[str, int]:
    """Methods, by pointcut, as the status has it."""
    return {each.pointcut: each.functions for each in status.of(settings).pointcuts}


def test_the_broker_is_measured_from_its_start(settings: Settings, folder: DataFolder) -> None:
    """And tells what is woven in it, as each process of Python does."""
    added = java_start.at_start(settings, "kafka")
    kafka = EmbeddedKafka(settings.data_path / "kafka", settings, added=added)
    kafka.prepare()
    guard = Guard(folder)
    child = Child(Program("kafka", kafka.command(), {}), folder.logs / "kafka.log", guard)
    reading = Reading(settings)
    try:
        until(lambda: kafka.is_ready() or child.exit_status() is not None, START_SECONDS)
        until(lambda: "requests" in purposes(settings), START_SECONDS)
        until(lambda: woven(settings)["kafka.server.KafkaApis.handle"] >= 1, START_SECONDS)
        (process,) = status.of(settings).processes

        assert (process.program, process.wrong) == ("kafka", "")
        assert woven(settings)["py4j.GatewayServer.start"] == 0
        assert process.pid == child.pid
    finally:
        child.kill_group()
        guard.close()
        reading.close()
    assert status.of(settings).processes == []


def test_the_java_of_spark_is_measured_from_its_start(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who reads may come later, and others may be told meanwhile."""
    caplog.set_level(logging.INFO, "servioticy.monitoring")
    later = RuntimePerformance(Node("here/spark/1", "later"), "f", 1, 2, "s")
    added = java_start.at_start(settings, "spark")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with Starting(settings, scratch, added=added) as java, java.known():
        reading = Reading(settings)
        until(lambda: "py4j.GatewayServer.start" in purposes(settings), START_SECONDS)
        until(lambda: woven(settings)["py4j.GatewayServer.start"] >= 1, START_SECONDS)
        with (settings.data_path / "aspects.toml").open("a") as file:
            file.write('\n[publish]\nto = ["log"]\n')
        reading.look()
        stored = purposes(settings)
        with java_start.pipe_of(settings.data_path).open("wb", buffering=0) as pipe:
            pipe.write(msgspec.json.encode(later) + b"\n")
        reading.close()

    assert "later" in logged(caplog)
    assert purposes(settings) == stored


def test_who_reads_begins_with_what_has_been_written_before(tmp_path: Path) -> None:
    """A pipe that is there is not made anew: who writes to it would write to nobody."""
    settings = changed(load(), data=str(tmp_path))
    (tmp_path / "aspects.toml").write_text(ASPECTS)
    java_start.at_start(settings, "kafka")
    before = java_start.pipe_of(tmp_path).stat().st_ino
    Reading(settings).close()
    Reading(settings).close()

    assert java_start.pipe_of(tmp_path).stat().st_ino == before


def test_who_reads_is_a_program_that_ends_when_it_is_told(settings: Settings) -> None:
    """As `servioticy up` runs it beside its own; what has been written by then is stored."""
    java_start.at_start(settings, "kafka")
    ((name, command),) = java_start.commands(settings.data_path).items()
    step = RuntimePerformance(Node("here/kafka/1", "told"), "f", 1, 2, "s")
    process = subprocess.Popen(command, env={**os.environ, **to_environment(settings)})
    try:
        with java_start.pipe_of(settings.data_path).open("wb", buffering=0) as pipe:
            pipe.write(msgspec.json.encode(step) + b"\n")
        until(lambda: "told" in purposes(settings), START_SECONDS)
        process.terminate()

        assert process.wait(START_SECONDS) == 0
        assert name == java_start.READER
    finally:
        process.kill()
        process.wait()
