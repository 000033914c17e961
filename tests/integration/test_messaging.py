"""What only a real broker does: it refuses, it is set up otherwise, it hands out rubbish."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import TopicPartition as KafkaPlace
from kafka.admin import ConfigResource, ConfigResourceType
from kafka_faults import bring_fatal_error
from waiting import until

from servioticy.domain.emissions import emission
from servioticy.domain.letters import read_letter
from servioticy.domain.records import (
    DeadLetter,
    EmittedRecord,
    Position,
    UpdateRecord,
    write,
)
from servioticy.domain.topics import DAY_MS, MAX_MESSAGE, RETENTION, Topics
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.errors import Unavailable
from servioticy.messaging.admin import IN_STEP, Replicas, _client, ensure_topics
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.consumer import EmittedReader, LogEnds
from servioticy.messaging.emitted_pages import KafkaEmittedPages
from servioticy.messaging.emitter import SHORT_LETTER_BYTES, Emitter
from servioticy.messaging.log_writer import LogWriter
from servioticy.ports.borders import Crossing
from servioticy.ports.emitted import UnreadRecord

SECONDS = 300.0


@pytest.fixture
def topics(real_kafka: EmbeddedKafka, topic_prefix: str) -> Topics:
    made = Topics(topic_prefix)
    ensure_topics(KafkaConnection(real_kafka.bootstrap_servers), made, 1)
    return made


def limit(
    kafka: EmbeddedKafka, topic: str, value: int | None = None, what: str = MAX_MESSAGE
) -> int:
    """What the broker holds to for a topic; set to `value`, if given."""
    with _client(KafkaConnection(kafka.bootstrap_servers)) as client:
        kind = ConfigResourceType.TOPIC
        if value is not None:
            client.alter_configs([ConfigResource(kind, topic, {what: str(value)})])
        asked = [ConfigResource(kind, topic, {what: None})]
        found = client.describe_configs(asked, config_filter="All")["topic"][topic]
        return int(found[what]["value"])


def an_emitted_one(timestamp: int, size: int = 10) -> EmittedRecord:
    text = b'{"x":"%s"}' % (b"x" * size)
    return EmittedRecord("so", "s", 1, 1, timestamp, msgspec.Raw(text))


def test_topics_of_an_older_release_get_room(real_kafka: EmbeddedKafka, topics: Topics) -> None:
    """Their limits are raised to what is needed; what an operator has raised stays."""
    limit(real_kafka, topics.updates, 1000)
    limit(real_kafka, topics.dead_letters, 2_097_152)
    limit(real_kafka, topics.emitted, 50_000_000)

    ensure_topics(KafkaConnection(real_kafka.bootstrap_servers), topics, 1)

    assert limit(real_kafka, topics.updates) == topics.sizes[topics.updates]
    assert limit(real_kafka, topics.dead_letters) == topics.sizes[topics.dead_letters]
    assert limit(real_kafka, topics.emitted) == 50_000_000


def test_topics_keep_updates_for_as_long_as_is_set(
    real_kafka: EmbeddedKafka, topics: Topics
) -> None:
    """From the beginning on; what an operator has made longer, or endless, stays."""
    assert limit(real_kafka, topics.dead_letters, what=RETENTION) == 30 * DAY_MS
    limit(real_kafka, topics.updates, 1000, RETENTION)
    limit(real_kafka, topics.emitted, -1, RETENTION)
    limit(real_kafka, topics.dead_letters, 90 * DAY_MS, RETENTION)

    ensure_topics(KafkaConnection(real_kafka.bootstrap_servers), topics, 1)

    assert limit(real_kafka, topics.updates, what=RETENTION) == 30 * DAY_MS
    assert limit(real_kafka, topics.emitted, what=RETENTION) == -1
    assert limit(real_kafka, topics.dead_letters, what=RETENTION) == 90 * DAY_MS


def letters(kafka: EmbeddedKafka, topics: Topics) -> list[DeadLetter]:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "test"})
    try:
        place = TopicPartition(topics.dead_letters, 0, 0)
        _low, high = consumer.get_watermark_offsets(place, timeout=10)
        consumer.assign([place])
        found: list[DeadLetter] = []
        while len(found) < high:
            message = consumer.poll(10)
            assert message is not None and message.error() is None
            found.append(read_letter(message.value(), message.headers()))
        return found
    finally:
        consumer.close()


def test_what_the_broker_refuses_for_ever_stops_nobody(
    real_kafka: EmbeddedKafka, topics: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    """A topic with a smaller limit than ours: the update goes to the dead letters."""
    limit(real_kafka, topics.emitted, 5000)
    output = Emitter(KafkaConnection(real_kafka.bootstrap_servers), topics, 0)

    output.emit(1, [emission(an_emitted_one(1))])
    output.flush()
    output.emit(2, [emission(an_emitted_one(2, 6000))])
    output.flush()
    output.emit(3, [emission(an_emitted_one(3))])
    output.flush()

    assert output.acknowledged == 3
    (letter,) = letters(real_kafka, topics)
    assert letter.record == write(an_emitted_one(2, 6000))
    assert "emission_rejected" in caplog.text


def test_a_letter_that_its_topic_refuses_is_cut(
    real_kafka: EmbeddedKafka, topics: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    """Better the beginning of it than a partition that stands."""
    limit(real_kafka, topics.dead_letters, SHORT_LETTER_BYTES + 10_000)
    output = Emitter(KafkaConnection(real_kafka.bootstrap_servers), topics, 0)

    output.dead_letter(DeadLetter(0, 1, "r", b"x" * (SHORT_LETTER_BYTES + 20_000)))
    output.flush()
    limit(real_kafka, topics.dead_letters, 100)
    output.dead_letter(DeadLetter(0, 2, "r", b"x" * 200))
    output.flush()

    (letter,) = letters(real_kafka, topics)
    assert len(letter.record) == SHORT_LETTER_BYTES
    assert letter.whole_bytes == SHORT_LETTER_BYTES + 20_000
    assert "dead_letter_lost" in caplog.text


@pytest.fixture
def reader(real_kafka: EmbeddedKafka, topics: Topics) -> Iterator[EmittedReader]:
    made = EmittedReader(KafkaConnection(real_kafka.bootstrap_servers), topics, lambda: "id")
    yield made
    made.stop()


def test_a_reader_survives_what_it_cannot_read(
    reader: EmittedReader, real_kafka: EmbeddedKafka, topics: Topics
) -> None:
    """Every watcher of every tenant depends on it: rubbish is skipped, and told."""
    found: list[UnreadRecord] = []
    thread = reader.start(found.extend)
    producer = Producer({"bootstrap.servers": real_kafka.bootstrap_servers})
    half = write(an_emitted_one(2)).replace(b"xxx", b"\\ud800")
    rubbish = [b"\xff", b"", b"{}", half, b"[" * 100_000, b'{"update":1e999}']
    for value in [write(an_emitted_one(1)), *rubbish, write(an_emitted_one(3))]:
        producer.produce(topics.emitted, value, partition=0)
    assert producer.flush(10) == 0

    until(lambda: len(found) == 2)
    assert [each.read().timestamp for each in found] == [1, 3]
    assert reader.skipped == len(rubbish)
    assert thread.is_alive()


def test_each_record_is_read_with_its_partition_and_offset(
    real_kafka: EmbeddedKafka, topic_prefix: str
) -> None:
    """Whoever remembers them can read on from there; what cannot be read has an offset, too."""
    topics = Topics(topic_prefix)
    connection = KafkaConnection(real_kafka.bootstrap_servers)
    ensure_topics(connection, topics, 2)
    reader, found = EmittedReader(connection, topics, lambda: "id"), []
    reader.start(found.extend)
    producer = Producer({"bootstrap.servers": real_kafka.bootstrap_servers})
    for number in range(6):
        value = b"rubbish" if number == 2 else write(an_emitted_one(number))
        producer.produce(topics.emitted, value, partition=number % 2)
    assert producer.flush(10) == 0

    until(lambda: len(found) == 5)
    reader.stop()
    assert {each.read().timestamp: each.position for each in found} == {
        number: Position(number % 2, number // 2) for number in (0, 1, 3, 4, 5)
    }


def test_a_reader_survives_its_listener(
    reader: EmittedReader,
    real_kafka: EmbeddedKafka,
    topics: Topics,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What one batch does to the listener is no reason to close everybody's socket."""
    found: list[int] = []
    failed = threading.Event()

    def listen(records: list[UnreadRecord]) -> None:
        if not failed.is_set():
            failed.set()
            raise ValueError("half of a pair")
        found.extend(each.read().timestamp for each in records)

    thread = reader.start(listen)
    output = Emitter(KafkaConnection(real_kafka.bootstrap_servers), topics, 0)
    output.emit(1, [emission(an_emitted_one(1))])
    output.flush()
    assert failed.wait(SECONDS)
    output.emit(2, [emission(an_emitted_one(2))])
    output.flush()

    until(lambda: found == [2])
    assert thread.is_alive()
    assert "emitted_not_delivered" in caplog.text


def test_the_log_grows_again_after_a_fatal_error_of_the_client(
    real_kafka: EmbeddedKafka, topics: Topics
) -> None:
    """Without another producer every PUT would be 503 until somebody restarts the API."""
    writer = LogWriter(KafkaConnection(real_kafka.bootstrap_servers), topics, 10.0)
    record = UpdateRecord("so", "s", 1, msgspec.Raw(b'{"lastUpdate":1}'))
    offsets = [writer.append(0, record)]
    bring_fatal_error(writer._grouped.producer)

    def appended() -> bool:
        try:
            offsets.append(writer.append(0, record))
        except Unavailable:
            return False
        return True

    until(appended)
    writer.close()
    assert offsets == [0, 1]


def test_partitions_that_are_added_are_written_and_read(
    real_kafka: EmbeddedKafka, topics: Topics
) -> None:
    """By those, too, that had looked how many there are; and from their beginning on."""
    connection = KafkaConnection(real_kafka.bootstrap_servers)
    writer, output = LogWriter(connection, topics, SECONDS), Emitter(connection, topics, 0)
    reader, found = EmittedReader(connection, topics, lambda: "id"), list[UnreadRecord]()
    ends, told = LogEnds(connection, topics.updates), LogEnds(connection, topics.emitted)
    record = UpdateRecord("so", "s", 1, msgspec.Raw(b'{"lastUpdate":1}'))
    reader.start(found.extend)
    assert writer.append(0, record) == 0
    output.send_to_log(0, record)
    output.flush()

    ensure_topics(connection, topics, 3)

    assert writer.append(2, record) == 0
    writer.append_all([(1, record), (2, record)])
    output.send_to_log(2, record)
    output.flush()
    assert ends.ends() == {0: 2, 1: 1, 2: 3}
    of_it = Emitter(connection, topics, 2)
    of_it.emit(1, [emission(an_emitted_one(7))])
    of_it.flush()
    until(lambda: found)
    reader.stop()
    assert [(each.read().timestamp, each.position) for each in found] == [(7, Position(2, 0))]

    ensure_topics(connection, topics, 1)

    assert ends.partitions() == told.partitions() == 3, "none is taken away"
    writer.close()


def test_what_crosses_goes_to_a_partition_that_has_been_added(
    real_kafka: EmbeddedKafka, topics: Topics
) -> None:
    connection = KafkaConnection(real_kafka.bootstrap_servers)
    output, ends = Emitter(connection, topics, 0), LogEnds(connection, topics.updates)
    value = write(UpdateRecord("so", "s", 1, msgspec.Raw(b'{"lastUpdate":1}')))
    output.emit(1, [], [Crossing(0, 0, 0, (0,), value)])
    output.flush()
    ensure_topics(connection, topics, 2)

    output.emit(2, [], [Crossing(1, 0, 0, (0, 1), value)])
    output.flush()

    assert ends.ends() == {0: 2, 1: 1}
    assert output.acknowledged == 2


def test_the_topic_is_read_from_any_place(real_kafka: EmbeddedKafka, topics: Topics) -> None:
    connection = KafkaConnection(real_kafka.bootstrap_servers)
    emitter = Emitter(connection, topics, 0)
    emitter.emit(1, [emission(an_emitted_one(at)) for at in range(30)])
    emitter.flush()
    pages = KafkaEmittedPages(connection, topics)

    first = pages.read(0, 5, 10)
    rest = pages.read(0, first.next_offset, 30)

    assert [each.record.timestamp for each in first.records] == list(range(5, 10))
    assert [each.record.timestamp for each in rest.records] == list(range(10, 30))
    assert [each.position for each in rest.records] == [Position(0, at) for at in range(10, 30)]
    assert pages.read(0, 2, 4).next_offset == 4
    assert pages.read(0, 30, 30) == ([], 30)
    assert pages.offsets_at(0) == {0: 0}
    assert pages.offsets_at(2**50) == {}


def test_a_question_of_who_reads_again_waits_for_nothing_that_may_come_later(
    real_kafka: EmbeddedKafka, topics: Topics
) -> None:
    """A client that had come to the end waited there for more, and each next question, another's
    too, was answered half a second later: a new subscription got its first update after two."""
    connection = KafkaConnection(real_kafka.bootstrap_servers)
    emitter = Emitter(connection, topics, 0)
    emitter.emit(1, [emission(an_emitted_one(at)) for at in range(30)])
    emitter.flush()
    pages = KafkaEmittedPages(connection, topics)
    pages.read(0, 0, 30)
    began = time.monotonic()

    for start in (25, 5, 20):
        assert len(pages.read(0, start, 30).records) == 30 - start
        assert pages.offsets_at(0) == {0: 0}
        assert pages.begins_at(0) == 0

    assert time.monotonic() - began < 2.0  # seven and a half, when each waited


class Meanwhile:
    """A client of the broker's: whenever it has asked for offsets, something is emitted."""

    def __init__(self, consumer: Consumer, emit: Callable[[], None]) -> None:
        self._consumer = consumer
        self._emit = emit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def offsets_for_times(self, *asked: Any, **more: Any) -> Any:
        found = self._consumer.offsets_for_times(*asked, **more)
        self._emit()
        return found


def test_what_is_emitted_while_it_is_asked_is_not_passed_over(
    real_kafka: EmbeddedKafka, topics: Topics
) -> None:
    """A new subscription would begin behind its first update, if nothing had come for a while."""
    connection = KafkaConnection(real_kafka.bootstrap_servers)
    emitter = Emitter(connection, topics, 0)
    pages = KafkaEmittedPages(connection, topics)

    def emit() -> None:
        emitter.emit(1, [emission(an_emitted_one(1))])
        emitter.flush()

    with mock.patch.object(pages, "_consumer", Meanwhile(pages._consumer, emit)):
        found = pages.offsets_at(0)

    assert found.get(0, 0) == 0
    assert pages.offsets_at(0) == {0: 0}


def test_what_the_broker_has_dropped_is_told(
    real_kafka: EmbeddedKafka, topics: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody was away for longer than the topic reaches back: what is left is read."""
    connection = KafkaConnection(real_kafka.bootstrap_servers)
    emitter = Emitter(connection, topics, 0)
    emitter.emit(1, [emission(an_emitted_one(at)) for at in range(10)])
    emitter.flush()
    with _client(connection) as client:
        client.delete_records({KafkaPlace(topics.emitted, 0): 6})

    page = KafkaEmittedPages(connection, topics).read(0, 2, 10)

    assert [each.record.timestamp for each in page.records] == [6, 7, 8, 9]
    (told,) = (each for each in caplog.records if each.message == "emitted_updates_missing")
    assert (told.__dict__["from"], told.__dict__["to"]) == (2, 6)


def test_topics_are_told_how_many_brokers_have_to_have_a_message(
    real_kafka: EmbeddedKafka, topic_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Of one broker alone no topic can have two: those that are there stay as they were."""
    caplog.set_level("WARNING", "servioticy.messaging")
    made = Topics(f"{topic_prefix}in-step-")
    connection = KafkaConnection(real_kafka.bootstrap_servers)
    ensure_topics(connection, made, 1, Replicas(1, 1))

    ensure_topics(connection, made, 1, Replicas(0, 2))

    assert limit(real_kafka, made.updates, what=IN_STEP) == 1
    told = [each for each in caplog.records if each.message == "topic_replicas_few"]
    assert told
    assert set(told[0].__dict__["topics"]) == set(made.least)
    with pytest.raises(Unavailable, match="refuses"):
        ensure_topics(connection, Topics(f"{topic_prefix}three-"), 1, Replicas(3, 2))
