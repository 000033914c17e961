"""How messages are sent so that what is acknowledged is kept: acks=all, idempotent, in order."""

from __future__ import annotations

from confluent_kafka import Producer

from servioticy.domain.topics import FRAME_BYTES, MAX_LETTER_BYTES, MAX_MESSAGE_BYTES
from servioticy.errors import Rejected

QUEUE_KIB = 65_536
"""Most that a client holds of what the broker has not taken: bounded by bytes, not by number."""

QUEUE_MESSAGES = 500_000
"""More than batches under way hold: the bound by bytes is to be met first."""

TOLD_SECONDS = 5.0
"""How long the broker has to tell which partitions there are."""

SAFE = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.max.bytes": MAX_LETTER_BYTES + FRAME_BYTES,
    "queue.buffering.max.kbytes": QUEUE_KIB,
    "queue.buffering.max.messages": QUEUE_MESSAGES,
    "log_level": 2,
}
"""What every producer is made with."""


class Partitions:
    """Those of a topic of which a producer knows: it looks for others each five minutes only.

    Until then it refuses what goes to one that has been added.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._known = 1

    def reach(self, producer: Producer, partition: int) -> None:
        """Let the producer know of this partition, if there is one. Raises KafkaException.

        About a partition that is known nobody is asked.
        """
        if partition >= self._known:
            found = producer.list_topics(self._topic, TOLD_SECONDS).topics.get(self._topic)
            self._known = max(self._known, len(found.partitions) if found else 0)


def check_size(value: bytes, about: str) -> None:
    """Raises Rejected: the topics are made for so much and not a byte more."""
    if len(value) > MAX_MESSAGE_BYTES:
        raise too_large(len(value), about)


def too_large(size: int, about: str) -> Rejected:
    """Return the error of a message of so many bytes."""
    return Rejected(f"{about} can never be sent: {size} bytes, at most {MAX_MESSAGE_BYTES}")
