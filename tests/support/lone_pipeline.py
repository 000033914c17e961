"""The pipeline program alone between a real Postgres and a real broker."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from postgres_proxy import PostgresProxy
from running_platform import until

from benchmarks import processes
from servioticy.bootstrap import connect, kafka
from servioticy.changes import Changes
from servioticy.domain.records import EmittedRecord, LogRecord, read_emitted
from servioticy.domain.topics import Topics
from servioticy.embedded.postgres import EmbeddedPostgres
from servioticy.messaging.admin import ensure_topics
from servioticy.messaging.log_writer import LogWriter
from servioticy.settings import Settings, changed, to_environment
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.migrations import migrate
from servioticy.storage.roles import Role
from servioticy.storage.stream_graph import PostgresStreamGraph
from servioticy.storage.tenants import PostgresTenants
from servioticy.supervisor.process import Child

SECONDS = 300.0
"""For what never happens: Spark starts in ten, and in a hundred on a busy machine."""


class Pipeline:
    """`python -m pipeline`, started again when it ends by itself, as its supervisor does."""

    def __init__(self, settings: Settings, log: Path) -> None:
        self.proxy = PostgresProxy(settings.store.dsn)
        self._settings = changed(settings, dsn=self.proxy.dsn)
        self._log = log
        self._wanted = True
        self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _start(self) -> None:
        # It is killed before it can clean up.
        scratch = {"TMPDIR": str(self._log.parent)}
        with self._log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pipeline"],
                env={**os.environ, **to_environment(self._settings), **scratch},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def work_with(self, settings: Settings) -> None:
        """Let it work with these settings, all but its Postgres: end it where it has others."""
        wanted = changed(settings, dsn=self.proxy.dsn)
        if wanted == self._settings:
            return
        self._settings = wanted
        begun = self.said().count("partition_begun")
        self.signal("program", signal.SIGKILL)
        until(lambda: self.said().count("partition_begun") > begun, SECONDS)

    def _keep(self) -> None:
        while self._wanted:
            self.process.wait()
            if self._wanted:
                self._start()

    def signal(self, victim: str, number: signal.Signals) -> bool:
        """Send a signal to the "worker", the "driver" or the "program"; whether there was one."""
        found = {"worker": self._workers, "driver": self._driver, "program": self._program}[
            victim
        ]()
        for each in found:
            _send(each, number)
        return bool(found)

    def _workers(self) -> list[int]:
        """The processes forked by Spark's daemon, which hold the tasks."""
        daemons = self._running(b"pipeline.spark.daemon")
        return [each for each in daemons if not set(processes.tree(each)[1:]) & set(daemons)]

    def _driver(self) -> list[int]:
        return self._running(b"PythonGatewayServer")

    def _program(self) -> list[int]:
        return [self.process.pid]

    def _running(self, words: bytes) -> list[int]:
        below = processes.tree(self.process.pid)
        return [each for each in below if words in _command(each)]

    def said(self) -> str:
        """Its log."""
        return self._log.read_text("utf-8", "replace")

    def kill(self) -> None:
        """End it and all below it, at once, and do not start it again."""
        self._wanted = False
        for each in reversed(processes.tree(self.process.pid)):
            _send(each, signal.SIGKILL)
        self.process.wait()
        self._keeper.join()
        self.proxy.close()


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


class ForgetfulPostgres(EmbeddedPostgres):
    """One that can forget: see `Ground.forgetting`."""

    def command(self) -> list[str]:
        """Without autovacuum, whose commits wait for the disk, and write down all before them."""
        return [*super().command(), "-c", "autovacuum=off"]


class Log:
    """The log, from outside the platform."""

    def __init__(self, settings: Settings, topics: Topics) -> None:
        self._topic = topics.updates
        self._writer = LogWriter(kafka(settings), topics, 30)
        self._consumer = _consumer(settings)

    def append(self, partition: int, record: LogRecord) -> int:
        return self._writer.append(partition, record)

    def append_all(self, records: Sequence[tuple[int, LogRecord]]) -> None:
        for partition, record in records:
            self.append(partition, record)

    def end_offset(self, partition: int) -> int:
        place = TopicPartition(self._topic, partition)
        return self._consumer.get_watermark_offsets(place, timeout=10, cached=False)[1]

    def partitions(self) -> int:
        return 1

    def close(self) -> None:
        self._writer.close()
        self._consumer.close()


def _consumer(settings: Settings) -> Consumer:
    return Consumer({"bootstrap.servers": settings.log.bootstrap_servers, "group.id": "tests"})


@dataclass
class Ground:
    """Stores with schema and topics, and ways to look into them."""

    settings: Settings

    def __post_init__(self) -> None:
        self.database = connect(self.settings)
        migrate(self.database)
        ensure_topics(kafka(self.settings), self.topics, self.settings.log.partitions)
        self.log = Log(self.settings, self.topics)
        self._api = connect(self.settings, Role.API)
        graph = PostgresStreamGraph(self._api)
        self.changes = Changes(graph, PostgresChangeStore(self._api), self.log)
        tenants = PostgresTenants(self._api)
        self.tenant, self.slow_tenant = (
            tenants.tenant_of(tenants.create_tenant(name)) or 0 for name in "ts"
        )

    def close(self) -> None:
        """Close all connections."""
        self.log.close()
        self.database.close()
        self._api.close()

    @property
    def topics(self) -> Topics:
        return Topics(self.settings.log.topic_prefix)

    def progress(self) -> tuple[int, int]:
        """How far everything is stored, and how far acknowledged."""
        rows = self.database.rows("SELECT next_offset, emitted_offset FROM progress")
        return rows[0] if rows else (0, 0)

    @contextlib.contextmanager
    def forgetting(self, server: Child) -> Iterator[None]:
        """Kill the server of a ForgetfulPostgres at the end, with all commits in between that did
        not wait for the disk.

        Else its writer would write some of them down now and then.
        """
        sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
        until(lambda: self.database.rows(sql), SECONDS)
        ((writer,),) = self.database.rows(sql)
        os.kill(writer, signal.SIGSTOP)
        try:
            yield
        finally:
            server.kill_group()
            os.kill(writer, signal.SIGKILL)  # stopped, it would not notice

    def held(self) -> bool:
        """Whether some worker has claimed the partition."""
        sql = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = 0"
        return bool(self.database.rows(sql))


class Emitted:
    """Everything in the topic of emitted updates, from its beginning."""

    def __init__(self, ground: Ground) -> None:
        self.values: list[bytes] = []
        self._place = TopicPartition(ground.topics.emitted, 0, 0)
        self._consumer = _consumer(ground.settings)
        self._consumer.assign([self._place])

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def read(self) -> list[EmittedRecord]:
        """All that is there now."""
        _low, high = self._consumer.get_watermark_offsets(self._place, timeout=10, cached=False)
        deadline = time.monotonic() + SECONDS
        while len(self.values) < high:
            assert time.monotonic() < deadline
            for message in self._consumer.consume(500, timeout=0.2):
                if message.error() is None:
                    self.values.append(message.value() or b"")
        return [read_emitted(value) for value in self.values]

    def different(self) -> int:
        """How many updates there are, repeats not counted."""
        found = self.read()
        return len({(e.service_object, e.stream, e.timestamp, e.version) for e in found})
