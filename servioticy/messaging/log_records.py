"""Single records of the log, for whoever looks at one now and then."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, TopicPartition

from servioticy.domain.records import LogRecord, UnreadableRecord, read_record
from servioticy.domain.topics import Topics
from servioticy.errors import Unavailable
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.consumer import new_consumer
from servioticy.turns import Turns

READ_SECONDS = 2.0
"""So long somebody waits for one, who gets the rest of his answer without it."""
WAIT_MS = 10


class LogRecords:
    """Reads one record after another; connects with the first. Callers take turns."""

    def __init__(self, connection: KafkaConnection, topics: Topics) -> None:
        self._connection = connection
        self._topic = topics.updates
        self._turns = Turns(READ_SECONDS)
        self._consumer: Consumer | None = None

    def record(self, caller: int, partition: int, offset: int) -> LogRecord | None:
        """Return what stands there; None where nothing does. Raises Unavailable."""
        with self._turns.turn(caller):
            try:
                return self._read(TopicPartition(self._topic, partition, offset))
            except KafkaException as error:
                raise Unavailable(f"the log cannot be read: {error}") from error

    def _read(self, place: TopicPartition) -> LogRecord | None:
        if self._consumer is None:
            self._consumer = new_consumer(self._connection, WAIT_MS)
        consumer = self._consumer
        begins, ends = consumer.get_watermark_offsets(place, timeout=READ_SECONDS, cached=False)
        if not begins <= place.offset < ends:
            return None
        consumer.assign([place])
        try:
            message = consumer.poll(READ_SECONDS)
        finally:
            consumer.unassign()  # else it would go on to fetch what follows
        if message is None:
            raise Unavailable(f"{place.topic} cannot be read at offset {place.offset}")
        if message.error() is not None:
            raise KafkaException(message.error())
        if message.offset() != place.offset:
            return None
        try:
            return read_record(message.value())
        except UnreadableRecord:
            return None
