"""Making the topics, and looking at them. Uses kafka-python: seldom called, no native threads."""

from __future__ import annotations

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError

from servioticy.errors import Unavailable
from servioticy.messaging.topics import MAX_MESSAGE_BYTES, Topics


def ensure_topics(bootstrap_servers: str, topics: Topics, partitions: int) -> None:
    """Make the topics that do not exist yet; existing ones keep their partitions.

    Raises Unavailable where the broker does not answer.
    """
    try:
        client = KafkaAdminClient(
            bootstrap_servers=bootstrap_servers.split(","), reconnect_backoff_max_ms=1000
        )
    except KafkaError as error:
        raise Unavailable(f"no Kafka broker answers at {bootstrap_servers}: {error}") from error
    try:
        existing = set(client.list_topics())
        wanted = [
            NewTopic(
                name,
                num_partitions=partitions,
                replication_factor=-1,
                topic_configs={"max.message.bytes": str(MAX_MESSAGE_BYTES)},
            )
            for name in topics.all
            if name not in existing
        ]
        if wanted:
            client.create_topics(wanted)
    except TopicAlreadyExistsError:
        pass  # another program made them meanwhile
    finally:
        client.close()
