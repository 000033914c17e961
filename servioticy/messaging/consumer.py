"""Reading topics: where the log ends, and what is emitted from now on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from confluent_kafka import OFFSET_END, Consumer, KafkaException, Message, TopicPartition

from servioticy.domain.emissions import keyed
from servioticy.domain.letters import clipped
from servioticy.domain.log_loss import Bounds
from servioticy.domain.model import StreamRef
from servioticy.domain.records import (
    EmittedRecord,
    Position,
    UnreadableRecord,
    read_emitted,
)
from servioticy.domain.topics import Topics
from servioticy.errors import Unavailable
from servioticy.messaging.connection import KafkaConnection
from servioticy.ports.emitted import UnreadRecord

log = logging.getLogger("servioticy.messaging")

MAX_BATCH = 1000
MAX_BATCH_BYTES = 8_388_608
"""So much is handed to the listener at once; the last message may exceed it."""

QUEUED_KIB = 16_384
"""What the client fetches ahead."""

WAIT_MS = 500
READ_SECONDS = 10.0
LED_SECONDS = 0.02
NEW_SECONDS = 2.0
"""Between two looks for partitions that have been added."""
MISSED = 3
"""Looks without an answer, each of a second, after which we count as cut off."""
SKEW_MS = 60_000
"""How far the clocks of the machines that write may be apart, where the broker stamps nothing."""

PAUSE_SECONDS = 1.0
"""After an error, so that one that stays is not logged without end."""


def new_consumer(connection: KafkaConnection, wait_ms: int = WAIT_MS) -> Consumer:
    """Return a client that reads, and commits nothing.

    `wait_ms`: so long the broker waits for records where there are none; whatever else the client
    asks of it waits behind that.
    """
    return Consumer(
        {
            **connection.for_librdkafka(),
            "group.id": "servioticy-reader",  # required by the client; offsets are never committed
            "enable.auto.commit": False,
            "fetch.wait.max.ms": wait_ms,
            "queued.max.messages.kbytes": QUEUED_KIB,
            # Our place is gone only where the topic is: it is another one, or we were too slow.
            "auto.offset.reset": "earliest",
            "log_level": 2,
        }
    )


def wait_until_led(connection: KafkaConnection, topics: Iterable[str], partitions: int) -> None:
    """Wait until topics that were just made can be read and written. Raises Unavailable.

    The broker says that they are there a moment before it knows who leads them.
    """
    consumer = new_consumer(connection)
    deadline = time.monotonic() + READ_SECONDS
    try:
        for place in [TopicPartition(name, n) for name in topics for n in range(partitions)]:
            while not _is_led(consumer, place):
                if time.monotonic() > deadline:
                    raise Unavailable(f"nobody leads partition {place.partition} of {place.topic}")
                time.sleep(LED_SECONDS)
    finally:
        consumer.close()


def _is_led(consumer: Consumer, place: TopicPartition) -> bool:
    try:
        consumer.get_watermark_offsets(place, timeout=1.0)
    except KafkaException:
        return False
    return True


class LogEnds:
    """Asks the broker how far a topic reaches. Safe to share between threads."""

    def __init__(self, connection: KafkaConnection, topic: str) -> None:
        self._topic = topic
        self._consumer = new_consumer(connection)

    def end_offset(self, partition: int, timeout_seconds: float = 1.0) -> int:
        """Return the offset that the partition's next record will get. Raises Unavailable."""
        return self.bounds(partition, timeout_seconds).end

    def bounds(self, partition: int, timeout_seconds: float = 1.0) -> Bounds:
        """Return where the partition begins and ends now. Raises Unavailable."""
        try:
            low, high = self._consumer.get_watermark_offsets(
                TopicPartition(self._topic, partition), timeout=timeout_seconds, cached=False
            )
        except KafkaException as error:
            raise Unavailable(f"the broker does not answer: {error}") from error
        return Bounds(int(low), int(high))

    def partitions(self, timeout_seconds: float = 5.0) -> int:
        """Return how many partitions the topic has. Raises Unavailable."""
        try:
            metadata = self._consumer.list_topics(self._topic, timeout_seconds)
        except KafkaException as error:
            raise Unavailable(f"the broker does not answer: {error}") from error
        return len(metadata.topics[self._topic].partitions)

    def all_bounds(self, timeout_seconds: float = 5.0) -> dict[int, Bounds]:
        """Return by partition where it begins and ends now. Raises Unavailable."""
        partitions = range(self.partitions(timeout_seconds))
        return {each: self.bounds(each, timeout_seconds) for each in partitions}

    def ends(self) -> dict[int, int]:
        """Return by partition the offset that its next record will get. Raises Unavailable."""
        return {each: self.end_offset(each) for each in range(self.partitions(1.0))}


def emitted_from(
    connection: KafkaConnection, topics: Topics, partition: int, next_offset: int
) -> list[EmittedRecord]:
    """Return what has been emitted with a place in the log from this offset on; those read are
    few.

    It was emitted after the log had that record, so the topic is read from that time on.
    Where the log ends there, nothing was. Raises Unavailable.
    """
    consumer = new_consumer(connection)
    try:
        since = _appended_at(consumer, TopicPartition(topics.updates, partition, next_offset))
        if since is None:
            return []
        asked = TopicPartition(topics.emitted, partition, max(0, since - SKEW_MS))
        (start,) = consumer.offsets_for_times([asked], timeout=READ_SECONDS)
        values = _values(consumer, start) if start.offset >= 0 else []
        return [each for each in map(_readable, values) if each and _offset(each) >= next_offset]
    except KafkaException as error:
        raise Unavailable(f"what was emitted cannot be read: {error}") from error
    finally:
        consumer.close()


def _appended_at(consumer: Consumer, place: TopicPartition) -> int | None:
    """When the record was appended, in milliseconds; None where there is none yet."""
    _low, high = consumer.get_watermark_offsets(place, timeout=READ_SECONDS)
    if place.offset >= high:
        return None
    consumer.assign([place])
    message = consumer.poll(READ_SECONDS)
    if message is None or message.error() is not None:
        raise Unavailable(f"offset {place.offset} of {place.topic} cannot be read")
    return int(message.timestamp()[1])


def _values(consumer: Consumer, start: TopicPartition) -> Iterator[bytes]:
    """Yield the values from a place to the present end of its partition."""
    _low, high = consumer.get_watermark_offsets(start, timeout=READ_SECONDS)
    consumer.assign([start])
    at = int(start.offset)
    while at < high:
        # Not `consume`: it waits for as many as it is asked for, or until the time is over.
        message = consumer.poll(READ_SECONDS)
        if message is None:
            raise Unavailable(f"{start.topic} cannot be read up to its end")
        if message.error() is not None:
            raise Unavailable(f"{start.topic} cannot be read: {message.error()}")
        at = int(message.offset() or 0) + 1
        yield message.value() or b""


def _readable(value: bytes) -> EmittedRecord | None:
    try:
        return read_emitted(value)
    except UnreadableRecord:
        return None


def _offset(record: EmittedRecord) -> int:
    return record.place[0] if record.place else -1


def _stream(key: bytes | None, value: bytes) -> StreamRef:
    """Return whose update a message is, by its key if it has one. Raises UnreadableRecord."""
    found = keyed(key)
    if found is None:
        record = read_emitted(value)
        found = StreamRef(record.service_object, record.stream)
    return found


class EmittedReader:
    """Hands every update emitted from now on to a listener, in a thread of its own.

    Each comes with its partition and offset, from which a reader that remembers them can go on.
    """

    def __init__(
        self, connection: KafkaConnection, topics: Topics, identity: Callable[[], str]
    ) -> None:
        """`identity` asks which topic it is: one that was made anew is another."""
        self._connection = connection
        self._topic = topics.emitted
        self._identity = identity
        self._stopped = threading.Event()
        self.skipped = 0
        """Messages that could not be read, and errors of partitions, since the start."""
        self.begins: dict[int, int] = {}
        """By partition the offset of the first record that is handed over; known at the start."""
        self.topic_id = ""
        """Which topic it is; known at the start."""
        self._assigned: set[int] = set()
        """Partitions that are read: those of the start, and of what was added since all."""
        self._look_at = 0.0
        self._missed = 0
        """Looks in a row at which the broker has not answered."""

    @property
    def is_cut_off(self) -> bool:
        """Whether the broker has not answered for some ten seconds."""
        return self._missed >= MISSED

    def start(self, listener: Callable[[list[UnreadRecord]], None]) -> threading.Thread:
        """Begin at the present end of every partition; returns once that is fixed."""
        consumer = new_consumer(self._connection)
        try:
            partitions = consumer.list_topics(self._topic, 10).topics[self._topic].partitions
            ends = []
            for each in partitions:
                place = TopicPartition(self._topic, each)
                ends.append(
                    TopicPartition(
                        self._topic, each, consumer.get_watermark_offsets(place, timeout=10)[1]
                    )
                )
        except (KafkaException, KeyError) as error:
            raise Unavailable(f"cannot read the topic {self._topic}: {error}") from error
        self.topic_id = self._identity()
        self.begins = {each.partition: int(each.offset) for each in ends}
        assigned = ends or [TopicPartition(self._topic, 0, OFFSET_END)]
        consumer.assign(assigned)
        self._assigned = {each.partition for each in assigned}
        thread = threading.Thread(
            target=self._read, args=(consumer, listener), name="emitted-reader", daemon=True
        )
        thread.start()
        return thread

    def stop(self) -> None:
        """Let the thread end."""
        self._stopped.set()

    def _read(self, consumer: Consumer, listener: Callable[[list[UnreadRecord]], None]) -> None:
        """One message wakes us; whatever else waits already comes along, up to a bound.

        Nothing that comes, and nothing that the listener makes of it, ends the reading.
        """
        while not self._stopped.is_set():
            try:
                self._read_added(consumer)
                found = self._records(consumer)
                if found:
                    listener(found)
            except Exception:  # one bad batch must not end what everybody waits for
                log.exception("emitted_not_delivered")
                self._stopped.wait(PAUSE_SECONDS)
        consumer.close()

    def _read_added(self, consumer: Consumer) -> None:
        """Read partitions that have been added from their beginning, now and then."""
        if (now := time.monotonic()) < self._look_at:
            return
        self._look_at = now + NEW_SECONDS
        try:
            there = consumer.list_topics(self._topic, 1.0).topics[self._topic].partitions.keys()
        except (KafkaException, KeyError):  # the broker is away, which reading notices
            self._missed += 1
            return
        self._missed = 0
        if added := sorted(there - self._assigned):
            consumer.incremental_assign([TopicPartition(self._topic, each, 0) for each in added])
            self._assigned |= set(added)
            log.info("emitted_partitions_added", extra={"partitions": added})

    def _records(self, consumer: Consumer) -> list[UnreadRecord]:
        found: list[UnreadRecord] = []
        size = 0
        message = consumer.poll(0.5)
        while message is not None:
            value = message.value() or b""
            if message.error() is not None:
                self._note("emitted_not_read", message, str(message.error()))
                self._stopped.wait(PAUSE_SECONDS)
                break
            try:
                position = Position(message.partition() or 0, message.offset() or 0)
                found.append(UnreadRecord(_stream(message.key(), value), value, position))
            except UnreadableRecord as error:
                self._note("emitted_unreadable", message, str(error))
            size += len(value)
            message = (
                consumer.poll(0) if len(found) < MAX_BATCH and size < MAX_BATCH_BYTES else None
            )
        return found

    def _note(self, event: str, message: Message, why: str) -> None:
        self.skipped += 1
        place = {"partition": message.partition(), "offset": message.offset()}
        log.warning(event, extra={**place, "why": clipped(why), "count": self.skipped})
