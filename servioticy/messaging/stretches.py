"""Stretches of topics as they are, byte by byte: read from one log, appended to another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import KafkaException, Message, Producer, TopicPartition

from servioticy.domain.log_loss import Bounds
from servioticy.errors import Unavailable
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.consumer import READ_SECONDS, new_consumer
from servioticy.messaging.failures import is_full
from servioticy.messaging.sending import SAFE

FLUSH_SECONDS = 60.0


class Record(NamedTuple):
    """A record of a topic, whatever is in it."""

    offset: int
    key: bytes | None
    value: bytes


class Stretches:
    """Reads partitions of topics from one offset to another. For one thread."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection

    def read(self, topic: str, partition: int, start: int, end: int) -> Iterator[Record]:
        """Yield the records from an offset to before another. Raises Unavailable.

        What the topic does not have any more is passed over.
        """
        if start >= end:
            return
        consumer = new_consumer(self._connection)
        try:
            consumer.assign([TopicPartition(topic, partition, start)])
            at = start
            while at < end:
                message = consumer.poll(READ_SECONDS)
                if message is None:
                    raise Unavailable(f"{topic} cannot be read up to offset {end}")
                if message.error() is not None:
                    raise Unavailable(f"{topic} cannot be read: {message.error()}")
                at = int(message.offset() or 0) + 1
                if at <= end:
                    yield Record(at - 1, message.key(), message.value() or b"")
        except KafkaException as error:
            raise Unavailable(f"{topic} cannot be read: {error}") from error
        finally:
            consumer.close()

    def first(self, topic: str, partition: int, bounds: Bounds) -> Record | None:
        """Return the first record of a partition; None where it is empty. Raises Unavailable."""
        return next(self.read(topic, partition, bounds.first, bounds.end), None)


class Appender:
    """Appends records to topics, in order; `settle` tells that all are there. For one thread."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._producer = Producer({**SAFE, **connection.for_librdkafka(), "linger.ms": 5})
        self._refusal: object = None

    def append(self, topic: str, partition: int, value: bytes, key: bytes | None = None) -> None:
        """Append a record. Raises Unavailable where an earlier one was refused."""
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition=partition, on_delivery=self._noted
                )
            except (BufferError, KafkaException) as error:
                if not is_full(error):
                    raise Unavailable(f"{topic} does not take a record: {error}") from error
                self._served(0.1)
            else:
                self._served(0)
                return

    def settle(self) -> None:
        """Wait until the broker has all. Raises Unavailable where it has not."""
        try:
            left = self._producer.flush(FLUSH_SECONDS)
        except KafkaException as error:
            raise Unavailable(f"the broker refuses records: {error}") from error
        if left:
            raise Unavailable("the broker did not acknowledge all records in time")
        self._check()

    def _noted(self, error: object, _message: Message) -> None:
        self._refusal = self._refusal or error

    def _served(self, seconds: float) -> None:
        try:
            self._producer.poll(seconds)
        except KafkaException as error:
            raise Unavailable(f"the broker refuses records: {error}") from error
        self._check()

    def _check(self) -> None:
        if self._refusal is not None:
            raise Unavailable(f"the broker refuses a record: {self._refusal}")
