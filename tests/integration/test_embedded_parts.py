"""The embedded Postgres and broker, really run and really killed, and the jars."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import psycopg2
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from waiting import until

from servioticy.embedded import classes, jars, java, javascript, setup
from servioticy.embedded.folder import DataFolder, read_run
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.embedded.postgres import EmbeddedPostgres, _postgres_processes
from servioticy.errors import SetupError
from servioticy.settings import load
from servioticy.supervisor.process import Child, Guard
from servioticy.supervisor.program import Program

SECONDS = 300.0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Any], Child]]:
    """Runs a part as the supervisor does, and ends it with the test."""
    folder = DataFolder(tmp_path / "data")
    guard = Guard(folder)
    children: list[Child] = []

    def run(part: EmbeddedPostgres | EmbeddedKafka) -> Child:
        child = Child(Program("part", part.command(), {}), folder.logs / "part.log", guard)
        children.append(child)
        until(lambda: part.is_ready() or child.exit_status())
        assert child.exit_status() is None, child.last_lines()
        return child

    yield run
    for child in children:
        child.kill_group()
    guard.close()
    folder.release()


@pytest.fixture
def postgres(tmp_path: Path) -> EmbeddedPostgres:
    made = EmbeddedPostgres(tmp_path / "data" / "postgres")
    made.prepare()
    return made


@pytest.fixture
def kafka(tmp_path: Path) -> EmbeddedKafka:
    made = EmbeddedKafka(tmp_path / "data" / "kafka", load())
    made.prepare()
    return made


def query(postgres: EmbeddedPostgres, text: str) -> Any:
    connection = psycopg2.connect(postgres.dsn)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchone() if cursor.description else None
    finally:
        connection.close()


def test_postgres_keeps_a_committed_row_through_kill_9(postgres, start) -> None:
    """What a client was told is stored must be there when the server comes back."""
    server = start(postgres)
    query(postgres, "CREATE TABLE kept AS SELECT 42 AS answer")
    busy = psycopg2.connect(postgres.dsn)
    busy.cursor().execute("SELECT 1")

    os.kill(server.pid, signal.SIGKILL)
    server.kill_group()
    postgres.prepare()
    start(postgres)

    assert query(postgres, "SELECT answer FROM kept") == (42,)


def test_postgres_starts_over_a_pid_file_that_names_a_stranger(postgres, start) -> None:
    """After a restart of the machine the old pid may be any program's."""
    pid_file = Path(postgres._cluster) / "postmaster.pid"
    pid_file.write_text(f"{os.getpid()}\n{postgres._cluster}\n0\n1\n\n127.0.0.1\n")

    postgres.prepare()
    start(postgres)


def test_postgres_is_safe_by_default(postgres, start) -> None:
    """Durable, on the loopback only, and never without the password."""
    start(postgres)
    shown = [
        query(postgres, f"SHOW {name}")[0]
        for name in ("fsync", "synchronous_commit", "listen_addresses", "unix_socket_directories")
    ]
    wrong = postgres.dsn.replace(postgres._password_file.read_text(), "guess")

    assert shown == ["on", "on", "127.0.0.1", ""]
    assert postgres._password_file.stat().st_mode & 0o077 == 0
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(wrong)


def produce(kafka: EmbeddedKafka, value: bytes) -> None:
    delivered: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "all"})
    producer.produce("kept", value, on_delivery=lambda error, _: delivered.append(error))
    producer.flush(SECONDS)
    assert delivered == [None]


def first_record(kafka: EmbeddedKafka) -> bytes:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "test"})
    try:
        consumer.assign([TopicPartition("kept", 0, 0)])
        record = consumer.poll(SECONDS)
        assert record is not None
        assert record.error() is None
        return record.value()
    finally:
        consumer.close()


def test_kafka_keeps_an_acknowledged_record_through_kill_9(kafka, start) -> None:
    """The 202 of the API is the broker's acknowledgement; it must hold."""
    server = start(kafka)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(SECONDS)
    produce(kafka, b"an update")
    before = kafka.bootstrap_servers

    os.kill(server.pid, signal.SIGKILL)
    server.kill_group()
    kafka.prepare()
    start(kafka)

    assert kafka.bootstrap_servers == before
    assert first_record(kafka) == b"an update"


@pytest.mark.parametrize(("chosen", "messages"), [("os", 2**63 - 1), ("always", 1)])
def test_kafka_flushes_before_it_acknowledges_if_asked(tmp_path, start, chosen, messages) -> None:
    """For who wants an accepted update to survive a power cut, too."""
    kafka = EmbeddedKafka(tmp_path / "kafka", load(overrides={"broker_flush": chosen}))
    kafka.prepare()
    start(kafka)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(SECONDS)
    produce(kafka, b"an update")  # before, the broker may not know of it yet
    asked = ConfigResource(ConfigResource.Type.TOPIC, "kept")
    (found,) = admin.describe_configs([asked]).values()

    assert int(found.result(SECONDS)["flush.messages"].value) == messages


PLATFORM = """
import signal, sys
from servioticy.embedded.folder import DataFolder
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.embedded.postgres import EmbeddedPostgres
from servioticy.supervisor.program import Program
from servioticy.supervisor.supervisor import Supervisor
from servioticy.settings import load
settings = load()
folder = DataFolder(settings.data_path)
programs = []
for name, part in (
    ("postgres", EmbeddedPostgres(folder.path / "postgres")),
    ("kafka", EmbeddedKafka(folder.path / "kafka", settings)),
):
    part.prepare()
    programs.append(Program(name, part.command(), {}, part.is_ready, signal.SIGINT))
Supervisor(programs, folder, lambda event: print(event.kind, event.program, flush=True)).run_forever()
"""  # noqa: E501


def test_nothing_outlives_a_killed_platform(tmp_path) -> None:
    """kill -9 of the supervisor: no server is left, and the folder can be used again."""
    data = tmp_path / "data"
    environment = {**os.environ, "SERVIOTICY_DATA": str(data)}
    command = [sys.executable, "-c", PLATFORM]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        assert "ready kafka\n" in iter(started.stdout.readline, "")
        run = read_run(data)
        started.kill()
    assert run is not None
    DataFolder(data).release()

    assert set(run["pids"]) == {"postgres", "kafka"}
    assert not any(Path(f"/proc/{pid}/exe").exists() for pid in run["pids"].values())
    assert _postgres_processes(data / "postgres" / "cluster") == []


def test_set_up_has_nothing_to_do_twice(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it also succeeds where there is no network any more."""
    settings = load()
    setup.prepare(settings)
    capsys.readouterr()
    with (
        mock.patch.object(javascript, "download") as scripts,
        mock.patch.object(jars, "download") as archives,
        mock.patch.object(classes, "_compile") as compiler,
    ):
        setup.prepare(settings)

    assert not (scripts.called or archives.called or compiler.called)
    assert "ready: Java" in capsys.readouterr().err


def test_downloaded_jars_are_those_of_the_lock_file() -> None:
    settings = load()
    setup.prepare(settings)

    assert jars.missing(settings) == jars.damaged(settings) == []
    assert all(path.exists() for path in jars.spark_jars(settings))


def test_the_sandbox_s_parts_are_what_their_authors_published() -> None:
    """Read when these releases were chosen: nobody has changed them on the way."""
    published = {
        "acorn.js": "b95392d79457d0357555c5ed3e56302d074b92dff119bcf3b44179500b10e9df",
        "acorn-LICENSE": "76a876cf886ff9be2a8b5e2e86514fed06223c8c9f0c1e9ee9606e93841e00b7",
        "quickjs.wasm": "105c3bed22d457e43e3d1c3c1c6959fda62a8fe06f0fc8a985303c3a2be72232",
        "quickjs-LICENSE": "446a69ae534aa8612d8b16d3bfc670c5a5050597dca3ce9820441a60d5d04fbb",
    }
    settings = load()
    setup.prepare(settings)
    folder = javascript.require(settings, "quickjs")

    found = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in published}
    assert found == published
    assert javascript.missing(settings) == javascript.damaged(settings) == []


@pytest.mark.parametrize("which", classes.Classes)
def test_our_classes_compile_without_a_compiler_of_java_s_own(tmp_path, which) -> None:
    for library in load().embedded.jars_path.glob(classes.WEAVER):
        (tmp_path / library.name).symlink_to(library)
    settings = load({}, {"jars": str(tmp_path)})
    target = classes.build(settings, which, java.find(load()))

    names = {Path(name).stem for name in zipfile.ZipFile(target).namelist()}
    sources = Path(classes.__file__).parents[2] / "deploy" / "java" / which.value
    wanted = {path.stem for path in sources.rglob("*.java")}
    assert wanted <= names
    assert {each for each in names if each.split("$")[0] not in wanted} <= wanted
    assert classes.require(settings, which) == target


def test_classes_that_do_not_compile_are_shown_with_their_error(tmp_path, monkeypatch) -> None:
    (tmp_path / "Broken.java").write_text("class Broken { int f() { return nothing; } }")
    monkeypatch.setattr(classes, "_folder", lambda _classes: tmp_path)
    settings = load({}, {"jars": str(tmp_path / "jars")})

    with pytest.raises(SetupError, match=r"Broken\.java"):
        classes.build(settings, classes.Classes.BUNDLES, java.find(load()))
    assert not list(settings.embedded.jars_path.iterdir())


def test_java_shim_leaves_out_what_small_java_builds_lack(tmp_path) -> None:
    """Spark's launcher asks for a module; a Java without it would not start at all."""
    echo = tmp_path / "echo"
    echo.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    echo.chmod(0o755)
    home = java._shim(load({}, {"jars": str(tmp_path / "jars")}), echo)

    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-modules=other", ""]
    done = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True)
    assert done.stdout == "-cp|a b|--add-modules=other||"
