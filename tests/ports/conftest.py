"""Every suite here runs on the twin and on the real thing: what one promises, both keep."""

from __future__ import annotations

import time

import pytest
from port_builders import PARTITIONS, Messaging, Storage, messages, values

from sandbox.text import argument_names
from servioticy.bootstrap import KafkaLog
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.errors import Unavailable
from servioticy.memory import MemoryPlatform
from servioticy.messaging.admin import ensure_topics
from servioticy.messaging.letters import read_letter
from servioticy.messaging.producer import Emitter
from servioticy.messaging.records import read_emitted, read_record
from servioticy.messaging.topics import Topics
from servioticy.ports import Log
from servioticy.settings import Settings
from servioticy.storage.catalog import PostgresCatalog
from servioticy.storage.database import Database
from servioticy.storage.history import PostgresHistory
from servioticy.storage.partition_store import PostgresPartitionStore

CHANGE_WAIT_SECONDS = 1.0
KINDS = ["memory", pytest.param("real", marks=pytest.mark.real)]


@pytest.fixture(params=KINDS)
def storage(request: pytest.FixtureRequest) -> Storage:
    if request.param == "memory":
        platform = MemoryPlatform(PARTITIONS)
        platform.state.change_wait_seconds = CHANGE_WAIT_SECONDS
        store = platform.partition_store(argument_names)
        other_store = platform.partition_store(argument_names)
        tables = {"usage": "processor_us"}
        return Storage(
            platform.catalog,
            platform.history,
            store,
            other_store,
            lambda table: len(getattr(platform.state, tables.get(table, table))),
        )
    database, other = (Database(request.getfixturevalue("dsn")) for _ in range(2))
    request.addfinalizer(database.close)
    request.addfinalizer(other.close)
    return Storage(
        PostgresCatalog(database, CHANGE_WAIT_SECONDS),
        PostgresHistory(database),
        PostgresPartitionStore(database, argument_names),
        PostgresPartitionStore(other, argument_names),
        lambda table: int(database.rows(f"SELECT count(*) FROM {table}")[0][0]),
    )


@pytest.fixture(params=KINDS)
def messaging(request: pytest.FixtureRequest) -> Messaging:
    if request.param == "memory":
        platform = MemoryPlatform(PARTITIONS)
        return Messaging(
            platform.log,
            platform.output,
            lambda partition: [record for _, record in platform.records(partition)],
            lambda: platform.state.emitted,
            lambda: platform.state.dead_letters,
        )
    kafka: EmbeddedKafka = request.getfixturevalue("real_kafka")
    servers = kafka.bootstrap_servers
    topics = Topics(request.getfixturevalue("topic_prefix"))
    ensure_topics(servers, topics, PARTITIONS)
    log = KafkaLog(Settings(bootstrap_servers=servers, topic_prefix=topics.prefix))
    wait_for_leaders(log)
    return Messaging(
        log,
        lambda partition: Emitter(servers, topics, partition),
        lambda partition: [read_record(v) for v in values(servers, topics.updates, partition)],
        lambda: [read_emitted(v) for n in (0, 1) for v in values(servers, topics.emitted, n)],
        lambda: [
            read_letter(each.value(), each.headers())
            for each in messages(servers, topics.dead_letters, 0)
        ],
    )


def wait_for_leaders(log: Log) -> None:
    """A topic exists a moment before its partitions answer."""
    for partition in range(PARTITIONS):
        for _ in range(500):
            try:
                log.end_offset(partition)
                break
            except Unavailable:
                time.sleep(0.01)
