"""The topic of measurements: bounded in bytes and time, and written without a promise."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaException, Producer

from servioticy.errors import Unavailable
from servioticy.messaging.admin import ensure_passing_topic
from servioticy.messaging.connection import KafkaConnection

TIMEOUT_SECONDS = 10.0
QUEUE_KIB = 8_192
KEPT_MS = 7 * 86_400_000


class MeasurementTopic:
    """Belongs to one thread. Makes the topic where it is not there."""

    def __init__(self, connection: KafkaConnection, topic: str, most_bytes: int) -> None:
        """Raises Unavailable where the broker does not answer."""
        ensure_passing_topic(connection, topic, most_bytes, KEPT_MS)
        self._topic = topic
        self._failed = 0
        self._producer = Producer(
            {
                **connection.for_librdkafka(),
                "acks": 1,
                "compression.type": "lz4",
                "queue.buffering.max.kbytes": QUEUE_KIB,
                "delivery.timeout.ms": int(TIMEOUT_SECONDS * 1000),
                "log_level": 2,
            }
        )

    def send(self, messages: Sequence[tuple[bytes, bytes]]) -> int:
        """Send keys and values; return how many of them the broker has not taken.

        Raises Unavailable where it has taken none.
        """
        self._failed = 0
        for key, value in messages:
            try:
                self._producer.produce(self._topic, value, key, on_delivery=self._note)
            except (BufferError, KafkaException):
                self._failed += 1
            self._producer.poll(0)
        left: int = self._producer.flush(TIMEOUT_SECONDS + 1)
        if left:
            self._producer.purge()
            self._producer.flush(1.0)
        if messages and self._failed >= len(messages):
            raise Unavailable("the broker takes no measurements")
        return self._failed

    def close(self) -> None:
        """Nothing is under way: `send` waits."""
        self._producer.purge()

    def _note(self, error: object, _message: object) -> None:
        if error is not None:
            self._failed += 1
