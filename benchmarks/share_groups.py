"""Kafka's share groups (KIP-932) as a queue, beside those of Postgres (`queues.py`).

A broker of our own with `share.version=1`, a topic of one partition, and takers that each ask for
up to 100 records and acknowledge all of them at once. Its broker writes each record to the disk
before it says so, as Postgres does, or leaves that to the system, as brokers with copies do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from servioticy.embedded.folder import DataFolder
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.settings import Settings, changed
from servioticy.supervisor.program import Program
from servioticy.supervisor.supervisor import Supervisor

GROUP, AT_ONCE = "bench", 100
JOB = b'{"n":1}'
ANSWER_SECONDS = 30.0
POLL_SECONDS = 0.5
_SILENT = {"log_level": 0}
"""Of a broker that has ended nothing is said."""


@contextmanager
def broker(settings: Settings, data: Path, flush: str) -> Iterator[tuple[str, int]]:
    """A broker alone that knows share groups: where it is, and its process."""
    folder = DataFolder(data)
    own = changed(settings, broker_flush=flush)
    kafka = EmbeddedKafka(folder.path / "kafka", own, features=("share.version=1",))
    kafka.prepare()
    program = Program("kafka", kafka.command(), kafka.environment(), kafka.is_ready)
    supervisor = Supervisor([replace(program, together=True)], folder)
    try:
        supervisor.start()
        yield kafka.bootstrap_servers, supervisor.pids()["kafka"]
    finally:
        supervisor.stop()
        folder.release()


class ShareGroup:
    """A topic and the group that takes from it."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers, self._topic = servers, topic
        self._producer = Producer({**_SILENT, "bootstrap.servers": servers, "acks": "all"})
        admin = AdminClient({**_SILENT, "bootstrap.servers": servers})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(ANSWER_SECONDS)
        first = ConfigEntry(
            "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
        )
        group = ConfigResource(ResourceType.GROUP, GROUP + topic, incremental_configs=[first])
        for each in admin.incremental_alter_configs([group]).values():
            each.result(ANSWER_SECONDS)

    def put(self, count: int) -> None:
        """Put so many jobs, and wait until the broker has them."""
        for _ in range(count):
            self._producer.produce(self._topic, JOB)
        if self._producer.flush(ANSWER_SECONDS):
            raise TimeoutError("the broker does not take them")

    def take(self, taken: Callable[[int], bool], ready: Callable[[], None]) -> None:
        """Take jobs and finish them, some at once, until `taken`, which is told how many, says so.

        `ready` is called when the first answer has come: the taker is of the group then.
        """
        consumer: Any = ShareConsumer(
            {
                **_SILENT,
                "bootstrap.servers": self._servers,
                "group.id": GROUP + self._topic,
                "max.poll.records": AT_ONCE,
            }
        )
        consumer.subscribe([self._topic])
        try:
            goes_on, is_first = True, True
            while goes_on:
                some = [each for each in consumer.poll(POLL_SECONDS) if not each.error()]
                if is_first:
                    ready()
                    is_first = False
                goes_on = taken(len(some))
                if some:
                    consumer.commit_sync(ANSWER_SECONDS)
        finally:
            consumer.close()

    def drained(self, jobs: int, takers: int) -> float:
        """Return how many seconds so many takers take for what is there, from the first on.

        Until then they join the group, which takes five seconds. Something has to be there: a
        group of 4.1 that begins with an empty topic is answered with errors from then on.
        """
        lock, left = threading.Lock(), [jobs]
        at: list[float] = []

        def taken(count: int) -> bool:
            with lock:
                left[0] -= count
                at.extend([time.monotonic()] * bool(count))
                return left[0] > 0

        threads = [
            threading.Thread(target=self.take, args=(taken, lambda: None)) for _ in range(takers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return max(0.001, at[-1] - at[0])

    def waited_for(self, count: int, pause: float) -> list[float]:
        """Return how many milliseconds each of so many jobs takes that come one by one."""
        worked: list[float] = []
        is_ready = threading.Event()

        def taken(some: int) -> bool:
            worked.extend([time.monotonic()] * some)
            return len(worked) < count

        thread = threading.Thread(target=self.take, args=(taken, is_ready.set))
        thread.start()
        is_ready.wait()
        at = []
        for _ in range(count):
            time.sleep(pause)
            at.append(time.monotonic())
            self.put(1)
        thread.join()
        return [1000 * (end - begin) for begin, end in zip(at, worked, strict=True)]
