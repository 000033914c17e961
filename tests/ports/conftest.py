"""Ports that have a twin run on it and on the real thing: what one promises, both keep."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import pytest
from memory import MemoryPlatform
from memory.log import MemoryLog
from port_builders import (
    PARTITIONS,
    TAKEN_BACK,
    Messaging,
    Storage,
    Stored,
    messages,
    stream_id,
    values,
)

from sandbox.text import argument_names
from servioticy.bootstrap import KafkaLog
from servioticy.domain.letters import read_letter
from servioticy.domain.records import read_emitted, read_record
from servioticy.domain.topics import Topics
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.errors import Unavailable
from servioticy.messaging.admin import ensure_topics
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.emitter import Emitter
from servioticy.ports.log import Log
from servioticy.settings import Settings, changed
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.database import Database
from servioticy.storage.history import PostgresHistory
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.roles import Role
from servioticy.storage.stream_graph import PostgresStreamGraph
from servioticy.storage.tenants import PostgresTenants

CHANGE_WAIT_SECONDS = 1.0
KINDS = ["memory", pytest.param("real", marks=pytest.mark.real)]


@pytest.fixture(params=KINDS)
def storage(request: pytest.FixtureRequest) -> Storage:
    if request.param == "memory":
        platform = MemoryPlatform(PARTITIONS)
        platform.state.change_wait_seconds = CHANGE_WAIT_SECONDS
        tables = {"usage": "processor_us", "graph_edges": "edges", TAKEN_BACK: "taken_back"}
        return Storage(
            platform.tenants,
            platform.graph,
            platform.change_store,
            platform.history,
            platform.partition_store(argument_names),
            platform.partition_store(argument_names),
            lambda id_, name: platform.state.streams[id_, name],
            lambda table: len(getattr(platform.state, tables.get(table, table))),
        )
    database: Database = request.getfixturevalue("database")
    api: Database = request.getfixturevalue("api")
    pipeline: Database = request.getfixturevalue("pipeline")
    other = Database(request.getfixturevalue("dsn"), role=Role.PIPELINE)
    request.addfinalizer(other.close)
    return Storage(
        PostgresTenants(api),
        PostgresStreamGraph(api),
        PostgresChangeStore(api, CHANGE_WAIT_SECONDS),
        PostgresHistory(api),
        PostgresPartitionStore(pipeline, argument_names),
        PostgresPartitionStore(other, argument_names),
        partial(stream_id, database),
        lambda table: int(database.rows(f"SELECT count(*) FROM {table}")[0][0]),
    )


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    """A Postgres with the schema and nothing in it, as its owner, who sees all."""
    found = Database(dsn)
    yield found
    found.close()


@pytest.fixture
def api(dsn: str) -> Iterator[Database]:
    """The same one, as the API."""
    found = Database(dsn, role=Role.API)
    yield found
    found.close()


@pytest.fixture
def pipeline(dsn: str) -> Iterator[Database]:
    """The same one, as the pipeline."""
    found = Database(dsn, role=Role.PIPELINE)
    yield found
    found.close()


@pytest.fixture
def delivery(dsn: str) -> Iterator[Database]:
    """The same one, as delivery."""
    found = Database(dsn, role=Role.DELIVERY)
    yield found
    found.close()


@pytest.fixture
def stored(database: Database, api: Database, pipeline: Database) -> Stored:
    """The ports that only Postgres is behind."""
    return Stored(database, api, pipeline)


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
            lambda: MemoryLog(platform.state),
        )
    kafka: EmbeddedKafka = request.getfixturevalue("real_kafka")
    servers = kafka.bootstrap_servers
    connection = KafkaConnection(servers)
    topics = Topics(request.getfixturevalue("topic_prefix"))
    ensure_topics(connection, topics, PARTITIONS)
    settings = changed(Settings(), bootstrap_servers=servers, topic_prefix=topics.prefix)
    log = KafkaLog(settings)
    wait_for_leaders(log)
    return Messaging(
        log,
        lambda partition: Emitter(connection, topics, partition),
        lambda partition: [read_record(v) for v in values(servers, topics.updates, partition)],
        lambda: [read_emitted(v) for n in (0, 1) for v in values(servers, topics.emitted, n)],
        lambda: [
            read_letter(each.value(), each.headers())
            for each in messages(servers, topics.dead_letters, 0)
        ],
        lambda: KafkaLog(settings),
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


@pytest.fixture
def stream(storage: Storage) -> int:
    """A stream to store updates of, and a partition that has begun."""
    storage.create(storage.tenant(), "so1")
    storage.store.begin(0)
    return storage.stream_id("so1", "a")
