"""Making the topics, and looking at them. Uses kafka-python: seldom called, no native threads."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import InvalidPartitionsError, KafkaError, TopicAlreadyExistsError

from servioticy.domain.topics import RETENTION, Topics
from servioticy.errors import Unavailable
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.consumer import wait_until_led

log = logging.getLogger("servioticy.messaging")


IN_STEP = "min.insync.replicas"


class Replicas(NamedTuple):
    """On how many brokers a topic is; 0: as the brokers have it for their default."""

    factor: int = 0
    in_step: int = 0
    """So many have to have a message before it is acknowledged."""


AS_THE_BROKER_HAS_IT = Replicas()


def ensure_topics(
    connection: KafkaConnection,
    topics: Topics,
    partitions: int,
    replicas: Replicas = AS_THE_BROKER_HAS_IT,
) -> None:
    """Make the topics that do not exist yet; existing ones get partitions that they lack.

    New ones can be used when this returns. An existing topic that takes smaller messages than
    it needs, keeps them for a shorter time, or acknowledges what fewer brokers have, is told to
    do better; on how many brokers it is stays as it is. Partitions are never taken away, and
    `updates` gets them last: what is computed in a new one has where to go then. Raises
    Unavailable where the broker does not answer.
    """
    in_step = {IN_STEP: replicas.in_step} if replicas.in_step else {}
    least = {name: {**own, **in_step} for name, own in topics.least.items()}
    with _client(connection) as client:
        existing = set(client.list_topics())
        wanted = [
            NewTopic(
                name,
                num_partitions=partitions,
                replication_factor=replicas.factor or -1,
                topic_configs={
                    **_as_text(own),
                    # One clock for all: what was emitted is looked up by the log's time.
                    "message.timestamp.type": "LogAppendTime",
                },
            )
            for name, own in least.items()
            if name not in existing
        ]
        if wanted:
            with suppress(TopicAlreadyExistsError):  # another program made them meanwhile
                client.create_topics(wanted)
            wait_until_led(connection, [each.name for each in wanted], partitions)
        if there := {name: own for name, own in least.items() if name in existing}:
            _raise_limits(client, _possible(client, there, replicas))
            for name in sorted(there, key=topics.updates.__eq__):
                _grow(client, connection, name, partitions)


def _possible(
    client: KafkaAdminClient, wanted: Mapping[str, Mapping[str, int]], replicas: Replicas
) -> Mapping[str, Mapping[str, int]]:
    """Return what existing topics can be told: one that is on fewer brokers than have to have a
    message would take nothing any more. That is said, as others have to move it."""
    found = {
        each["name"]: min(len(part["replica_nodes"]) for part in each["partitions"])
        for each in client.describe_topics([*wanted])
    }
    least = max(replicas.factor, replicas.in_step)
    if few := {name: number for name, number in found.items() if number < least}:
        log.warning("topic_replicas_few", extra={"topics": few, "wanted": least})
    return {
        name: {what: n for what, n in own.items() if what != IN_STEP or n <= found[name]}
        for name, own in wanted.items()
    }


def _grow(
    client: KafkaAdminClient, connection: KafkaConnection, topic: str, partitions: int
) -> None:
    """Add the partitions that a topic lacks, and wait until they can be used."""
    (found,) = client.describe_topics([topic])
    before = len(found["partitions"])
    if before >= partitions:
        return
    try:
        client.create_partitions({topic: partitions})
    except InvalidPartitionsError:  # another program has added them meanwhile
        pass
    except KafkaError as error:  # not ours to change, perhaps: those that are there go on
        about = {"topic": topic, "partitions": before, "why": str(error)}
        log.warning("partitions_not_added", extra=about)
        return
    wait_until_led(connection, [topic], partitions)
    log.info("partitions_added", extra={"topic": topic, "before": before, "now": partitions})


def ensure_passing_topic(
    connection: KafkaConnection, topic: str, most_bytes: int, kept_ms: int
) -> None:
    """Make a topic of one partition that keeps so much and no more, unless it is there.

    Raises Unavailable where the broker does not answer.
    """
    with _client(connection) as client:
        if topic in client.list_topics():
            return
        bounds = {
            "retention.bytes": most_bytes,
            "segment.bytes": max(1 << 20, most_bytes // 4),
            RETENTION: kept_ms,
        }
        with suppress(TopicAlreadyExistsError):  # another process made it meanwhile
            client.create_topics(
                [
                    NewTopic(
                        topic,
                        num_partitions=1,
                        replication_factor=-1,
                        topic_configs=_as_text(bounds),
                    )
                ]
            )
    wait_until_led(connection, [topic], 1)


def topic_id(connection: KafkaConnection, topic: str) -> str:
    """Return the id that Kafka gave the topic: one made anew has another. Raises Unavailable."""
    with _client(connection) as client:
        (found,) = client.describe_topics([topic])
    if found["error_code"]:
        raise Unavailable(f"the broker does not tell of the topic {topic}: {found['error_code']}")
    return str(found["topic_id"])


def _raise_limits(client: KafkaAdminClient, wanted: Mapping[str, Mapping[str, int]]) -> None:
    """Never lowered: an operator may have other messages, or longer times, in mind."""
    kind = ConfigResourceType.TOPIC
    asked = [ConfigResource(kind, name, dict.fromkeys(least)) for name, least in wanted.items()]
    found = client.describe_configs(asked, config_filter="All")["topic"]
    small = {
        name: short
        for name, least in wanted.items()
        if (short := {what: n for what, n in least.items() if _is_less(found[name][what], n)})
    }
    if not small:
        return
    try:
        client.alter_configs(
            [ConfigResource(kind, name, _as_text(short)) for name, short in small.items()]
        )
        log.info("topic_limits_raised", extra={"topics": small})
    except KafkaError as error:  # not ours to change, perhaps: what is too large is refused
        log.warning("topic_limits_small", extra={"topics": small, "why": str(error)})


def _is_less(found: Mapping[str, str], wanted: int) -> bool:
    value = int(found["value"])
    return 0 <= value < wanted  # below 0: no limit


def _as_text(limits: Mapping[str, int]) -> dict[str, str]:
    return {what: str(n) for what, n in limits.items()}


@contextmanager
def _client(connection: KafkaConnection) -> Iterator[KafkaAdminClient]:
    servers = connection.bootstrap_servers
    try:
        client = KafkaAdminClient(**connection.for_kafka_python())
    except KafkaError as error:
        raise Unavailable(f"no Kafka broker answers at {servers}: {error}") from error
    try:
        yield client
    except KafkaError as error:
        raise Unavailable(f"the broker at {servers} refuses: {error}") from error
    finally:
        client.close()
