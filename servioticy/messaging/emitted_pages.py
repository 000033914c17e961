"""The topic of emitted updates, read from any place in it."""

from __future__ import annotations

import logging
import threading

from confluent_kafka import KafkaException, TopicPartition

from servioticy.domain.records import (
    ConsumedRecord,
    Position,
    UnreadableRecord,
    read_emitted,
)
from servioticy.domain.topics import Topics
from servioticy.errors import Unavailable
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.consumer import MAX_BATCH, MAX_BATCH_BYTES, READ_SECONDS, new_consumer
from servioticy.ports.emitted import EmittedPage

WAIT_MS = 10
"""All that is read is there already. Where a client waits for more at the end of a partition, the
broker answers its next question only after that: each took half a second."""
NOWHERE = Position(-1, -1)

log = logging.getLogger("servioticy.messaging")


class KafkaEmittedPages:
    """Reads one stretch after another. Safe to share: threads wait for each other."""

    def __init__(self, connection: KafkaConnection, topics: Topics) -> None:
        self._topic = topics.emitted
        self._consumer = new_consumer(connection, WAIT_MS)
        self._lock = threading.Lock()
        self._at = NOWHERE
        """What the consumer is about to read."""

    def read(self, partition: int, offset: int, end: int) -> EmittedPage:
        """Read on from an offset, as much as is read at once, up to before `end`.

        Where the topic does not reach back so far any more, it begins where the topic does, and
        the log tells from where to where updates are missing.
        """
        with self._lock:
            try:
                return self._page(partition, offset, end)
            except KafkaException as error:
                self._at = NOWHERE
                raise Unavailable(f"what was emitted cannot be read: {error}") from error
            finally:
                if self._at == NOWHERE:
                    self._consumer.unassign()  # else it would go on to ask whether there is more

    def offsets_at(self, time_ms: int) -> dict[int, int]:
        """Return by partition the first offset whose record was emitted then or later.

        Partitions are missing of which nothing was. To ask for their ends would be another
        question: what is emitted between the two would be before such an end.
        """
        with self._lock:
            try:
                topics = self._consumer.list_topics(self._topic, READ_SECONDS).topics
                asked = [
                    TopicPartition(self._topic, each, max(0, time_ms))
                    for each in topics[self._topic].partitions
                ]
                found = self._consumer.offsets_for_times(asked, timeout=READ_SECONDS)
                return {each.partition: int(each.offset) for each in found if each.offset >= 0}
            except (KafkaException, KeyError) as error:
                raise Unavailable(f"what was emitted cannot be found: {error}") from error

    def begins_at(self, partition: int) -> int:
        """Return the first offset to which the topic still reaches back there."""
        place = TopicPartition(self._topic, partition)
        with self._lock:
            try:
                return int(self._consumer.get_watermark_offsets(place, timeout=READ_SECONDS)[0])
            except KafkaException as error:
                raise Unavailable(f"what was emitted cannot be found: {error}") from error

    def _page(self, partition: int, offset: int, end: int) -> EmittedPage:
        if self._at != (partition, offset):
            place = TopicPartition(self._topic, partition, offset)
            begins, _ = self._consumer.get_watermark_offsets(place, timeout=READ_SECONDS)
            if begins > offset:
                log.error(
                    "emitted_updates_missing",
                    extra={"partition": partition, "from": offset, "to": begins},
                )
            self._consumer.assign([place])
        self._at = NOWHERE
        records: list[ConsumedRecord] = []
        at, size = offset, 0
        while at < end and len(records) < MAX_BATCH and size < MAX_BATCH_BYTES:
            # Not `consume`: it waits for as many as it is asked for, or until the time is over.
            message = self._consumer.poll(READ_SECONDS)
            if message is None:
                raise Unavailable(f"{self._topic} cannot be read up to offset {end}")
            if message.error() is not None:
                raise KafkaException(message.error())
            value = message.value() or b""
            position = Position(partition, int(message.offset() or 0))
            at, size = position.offset + 1, size + len(value)
            try:
                records.append(ConsumedRecord(read_emitted(value), position))
            except UnreadableRecord:  # the reader of what is live has told about it
                continue
        if at < end:
            self._at = Position(partition, at)
        return EmittedPage(records, at)
