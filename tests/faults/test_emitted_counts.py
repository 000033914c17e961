"""Postgres is killed after a commit that did not wait for the disk, and after its emission.

The scripts end otherwise each time: what subscribers got has to be what history has.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from lone_pipeline import Emitted, ForgetfulPostgres, Ground
from plain_trees import Ends
from python_evaluator import PythonEvaluator, Trigger
from replays import Replay

from pipeline.engine import Engine
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.bootstrap import connect, emitter
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.settings import Settings, load
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.supervisor.process import Child

pytestmark = pytest.mark.timeout(900)

UPDATES = 60


def fickle(_trigger: Trigger, _values: list[bytes | None]) -> float:
    """Another value, or a timeout, whenever it is asked."""
    if random.random() < 0.3:
        raise Ends("timeout")
    return random.random()


def a_task(settings: Settings) -> Task:
    store = PostgresPartitionStore(connect(settings, durable=False), argument_names)
    return Task(
        0,
        store,
        lambda: emitter(settings, 0),
        Engine({"javascript": PythonEvaluator(fickle)}, 20, 1000),
    )


def rows(ground: Ground, first: int, end: int) -> list[Row]:
    consumer = Consumer(
        {"bootstrap.servers": ground.settings.log.bootstrap_servers, "group.id": "tests"}
    )
    consumer.assign([TopicPartition(ground.topics.updates, 0, first)])
    found: list[Row] = []
    while len(found) < end - first:
        message = consumer.poll(10)
        assert message is not None and message.error() is None
        found.append(Row(message.offset(), message.value()))
    consumer.close()
    return found


def test_what_subscribers_got_is_what_history_has(
    run_part: Callable[[str, Any], Child], real_kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    """In just that window: committed, emitted, acknowledged, and forgotten."""
    postgres = ForgetfulPostgres(tmp_path / "postgres")
    server = run_part("fickle", postgres)
    settings = load(
        overrides={
            "dsn": postgres.dsn,
            "bootstrap_servers": real_kafka.bootstrap_servers,
            "topic_prefix": "fickle-",
        }
    )
    ground = Ground(settings)
    emitted = Emitted(ground)
    replay = Replay(ground)
    replay.send(UPDATES)
    end = ground.log.end_offset(0)
    with ground.forgetting(server):
        task = a_task(settings)
        task.take(rows(ground, 0, end))
        task.end()
        stored = ground.progress()[0]
        got = {_key(each): bytes(each.update) for each in emitted.read()}
    assert stored == end

    run_part("fickle", postgres)
    forgotten_from = ground.progress()[0]
    assert forgotten_from < end, "it forgot nothing: this proves nothing"
    task = a_task(settings)
    task.take(rows(ground, 0, end))
    task.end()

    history = {
        (service_object, stream, timestamp): text.encode()
        for service_object, stream, timestamp, text in ground.database.rows(
            'SELECT service_object, name, "timestamp", document::text'
            "  FROM updates JOIN streams ON streams.id = stream_id"
        )
    }
    assert got.items() <= history.items()
    # What had been emitted of the last tree may be cut: what follows there is open, and comes.
    assert history == got | {_key(each): bytes(each.update) for each in emitted.read()}
    assert len(got) > UPDATES
    emitted.close()
    ground.close()


def _key(record: Any) -> tuple[str, str, int]:
    return record.service_object, record.stream, record.timestamp
