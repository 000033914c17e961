"""Where the time of an update goes: when Kafka's clients handed over its records.

They stamp each record, in milliseconds: the API's what it appends to the log, the pipeline's what
it emits. The clock is the machine's, so it is the same for all that runs on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, Message, TopicPartition

from servioticy.bootstrap import kafka, topics
from servioticy.domain.model import StreamRef
from servioticy.domain.records import UpdateRecord, read_emitted, read_record
from servioticy.errors import Unavailable
from servioticy.messaging.consumer import new_consumer
from servioticy.settings import Settings

READ_SECONDS = 10.0
AT_ONCE = 5000


class Update(NamedTuple):
    """When something happened to an update, in seconds of the machine's clock."""

    sent: float
    answered: float
    arrived: float


HOPS = ("to the log", "to the 202", "log to emitted", "emitted to socket")


def hops(
    settings: Settings, origin: StreamRef, watched: StreamRef, updates: Mapping[int, Update]
) -> dict[str, list[float]]:
    """Return the milliseconds of each hop, of the updates of a stream by their timestamps."""
    logged, emitted = handed_over(settings, origin, watched)
    found: dict[str, list[float]] = {name: [] for name in HOPS}
    for timestamp, (sent, answered, arrived) in updates.items():
        log, after = logged[timestamp], emitted[timestamp]
        seconds = (log - sent, answered - sent, after - log, arrived - after)
        for name, each in zip(HOPS, seconds, strict=True):
            found[name].append(1000 * each)
    return found


def handed_over(
    settings: Settings, origin: StreamRef, watched: StreamRef
) -> tuple[dict[int, float], dict[int, float]]:
    """Return when a stream's updates went into the log, and when another's were emitted.

    In seconds of the machine's clock, by their timestamps.
    """
    named = topics(settings)
    logged = {
        record.timestamp: at
        for at, value in stamped(settings, named.updates)
        if isinstance(record := read_record(value), UpdateRecord) and record.origin == origin
    }
    emitted = {
        out.timestamp: at
        for at, value in stamped(settings, named.emitted)
        if (out := read_emitted(value)) and (out.service_object, out.stream) == watched
    }
    return logged, emitted


def stamped(settings: Settings, topic: str) -> Iterator[tuple[float, bytes]]:
    """Yield all that a topic holds, each with the seconds at which it was handed over."""
    consumer = new_consumer(kafka(settings))
    try:
        for partition in consumer.list_topics(topic, READ_SECONDS).topics[topic].partitions:
            for message in _messages(consumer, TopicPartition(topic, partition)):
                yield message.timestamp()[1] / 1000, message.value() or b""
    finally:
        consumer.close()


def _messages(consumer: Consumer, place: TopicPartition) -> Iterator[Message]:
    low, high = consumer.get_watermark_offsets(place, READ_SECONDS)
    consumer.assign([TopicPartition(place.topic, place.partition, low)])
    while low < high:
        found = consumer.consume(AT_ONCE, READ_SECONDS)
        if not found:
            raise Unavailable(f"nothing came of {place.topic} in {READ_SECONDS:g} s")
        for message in found:
            low = (message.offset() or 0) + 1
            yield message
