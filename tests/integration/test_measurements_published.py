"""Measurements in a table and in a topic: there, and bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from port_builders import values

from monitoring.model import Calls, Node, RuntimePerformance
from monitoring.publishers.kafka import KafkaPublisher
from monitoring.publishers.postgres import PostgresPublisher
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.errors import Unavailable
from servioticy.messaging.admin import _client
from servioticy.messaging.connection import KafkaConnection
from servioticy.settings import Settings, changed
from servioticy.storage import measurements
from servioticy.storage.database import Database

NODE = Node("here/tests/1", "a\0b")


def a_step(number: int, sequence: str = "a" * 32) -> RuntimePerformance:
    return RuntimePerformance(NODE, "f", number, number + 1, sequence, step=f"{number:016x}")


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    made = Database(dsn)
    yield made
    made.close()


@pytest.mark.parametrize("program", ["api", "pipeline", "delivery", "broker"])
def test_each_program_writes_in_its_own_role(program: str, dsn: str, database: Database) -> None:
    publisher = PostgresPublisher(changed(Settings(), dsn=dsn), program, 1_000)
    publisher.publish([a_step(1), Calls(NODE, "f", 5, 2, 0), a_step(2, "4711:\0")])
    publisher.close()
    rows = database.rows("SELECT kind, purpose, sequence, measured FROM measurements ORDER BY id")

    assert [row[:3] for row in rows] == [
        ("RuntimePerformance", "ab", "a" * 32),
        ("Calls", "ab", ""),
        ("RuntimePerformance", "ab", "4711:"),
    ]
    assert rows[0][3]["node"]["nodePurpose"] == "a\0b"
    assert rows[1][3]["calls"] == 2


def test_the_oldest_rows_go(dsn: str, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many processes write: those of before go first, some at once."""
    monkeypatch.setattr(measurements, "FORGOTTEN_AT_ONCE", 30)
    settings = changed(Settings(), dsn=dsn)
    one, other = (PostgresPublisher(settings, each, 40) for each in ("api", "pipeline"))
    for number in range(0, 200, 20):
        (one if number % 40 else other).publish([a_step(number + n) for n in range(20)])
        ((count,),) = database.rows("SELECT count(*) FROM measurements")
        assert count == min(40, number + 20)
    fewer = PostgresPublisher(settings, "api", 10)
    for number in (200, 201):
        fewer.publish([a_step(number)])
    for each in (one, other, fewer):
        each.close()

    rows = database.rows("SELECT measured FROM measurements ORDER BY id")
    assert [row[0]["start"] for row in rows] == [*range(192, 202)]


def test_without_postgres_it_may_come(dsn: str) -> None:
    publisher = PostgresPublisher(
        changed(Settings(), dsn="host=127.0.0.1 port=1 connect_timeout=5"), "api", 1_000
    )

    with pytest.raises(Unavailable):
        publisher.publish([a_step(1)])


def test_the_topic_is_made_with_its_bounds(real_kafka: EmbeddedKafka, topic_prefix: str) -> None:
    """And by whoever comes later it is left as it is."""
    servers = real_kafka.bootstrap_servers
    settings = changed(Settings(), bootstrap_servers=servers, topic_prefix=topic_prefix)
    for number, most in enumerate((8 << 20, 1 << 30)):
        publisher = KafkaPublisher(settings, "measured", most)
        assert publisher.publish([a_step(number), Calls(NODE, "f", 5, 2, 0)]) == 0
        publisher.close()
    found = [json.loads(each) for each in values(servers, f"{topic_prefix}measured", 0)]
    with _client(KafkaConnection(servers)) as client:
        from kafka.admin import ConfigResource, ConfigResourceType

        asked = ConfigResource(
            ConfigResourceType.TOPIC, f"{topic_prefix}measured", {"retention.bytes": None}
        )
        told = client.describe_configs([asked], config_filter="All")["topic"]

    assert [each["type"] for each in found] == ["RuntimePerformance", "Calls"] * 2
    assert told[f"{topic_prefix}measured"]["retention.bytes"]["value"] == str(8 << 20)


def test_without_a_broker_it_may_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client would look for one for half a minute."""
    known = KafkaConnection.for_kafka_python
    monkeypatch.setattr(
        KafkaConnection, "for_kafka_python", lambda it: known(it) | {"bootstrap_timeout_ms": 100}
    )
    publisher = KafkaPublisher(
        changed(Settings(), bootstrap_servers="127.0.0.1:1"), "measured", 1 << 20
    )

    with pytest.raises(Unavailable):
        publisher.publish([a_step(1)])
