"""When the emitter sends what: what crosses borders waits for what was emitted before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError

from servioticy.domain.topics import Topics
from servioticy.errors import Unavailable
from servioticy.messaging import emitter
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.emitter import Emitter
from servioticy.ports.borders import Crossing


class Message:
    """What a callback is given."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def value(self) -> bytes:
        return self._value


class Producer:
    """One whose broker acknowledges what it is told to, when that is asked for."""

    def __init__(self, _configuration: object) -> None:
        self.sent: list[tuple[str, int, bytes]] = []
        self.room = 100
        """How many messages its queue still takes."""
        self._waiting: list[tuple[Callable[[Any, Any], None], bytes]] = []
        self._told: list[tuple[Callable[[Any, Any], None], Any, bytes]] = []

    def list_topics(self, topic: str, _seconds: float) -> Any:
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=range(3))})

    def produce_batch(
        self, topic: str, messages: list[dict[str, Any]], partition: int, done: Any
    ) -> None:
        for each in messages:
            if not self.room:
                each["_error"] = KafkaError(KafkaError._QUEUE_FULL)
                continue
            self.room -= 1
            self.sent.append((topic, partition, each["value"]))
            self._waiting.append((done, each["value"]))

    def acknowledge(self, most: int = 100, error: object = None) -> None:
        """The broker says of the next ones what became of them."""
        self._told += [(done, error, value) for done, value in self._waiting[:most]]
        del self._waiting[:most]

    def poll(self, _seconds: float) -> int:
        told, self._told = self._told, []
        for done, error, value in told:
            self.room += 1
            done(error, Message(value))
        if not self.room:
            self.acknowledge(1)  # else it would be waited for without end
        return len(told)

    def flush(self, seconds: float) -> int:
        self.acknowledge()
        self.poll(seconds)
        return len(self)

    def __len__(self) -> int:
        return len(self._waiting) + len(self._told)


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> Emitter:
    monkeypatch.setattr(emitter, "Producer", Producer)
    return Emitter(KafkaConnection("nowhere:1"), Topics(), 1)


def producer(output: Emitter) -> Producer:
    found: Any = output._producer
    return cast("Producer", found)


def crossing(name: str, *partitions: int) -> Crossing:
    return Crossing(0, 0, 0, partitions or (0,), name.encode())


def emit(output: Emitter, end: int, emitted: Sequence[str], *crossings: Crossing) -> None:
    output.emit(end, [(b"k", each.encode()) for each in emitted], crossings)


def values(output: Emitter) -> str:
    """What has been sent, in order."""
    return " ".join(value.decode() for _, _, value in producer(output).sent)


def test_what_crosses_waits_for_all_that_its_batch_has_emitted(output: Emitter) -> None:
    emit(output, 1, ["a", "b"], crossing("A", 0, 2), crossing("B"))
    producer(output).acknowledge(1)
    output.poll()
    assert (values(output), output.acknowledged, output.has_more) == ("a b", 0, True)

    producer(output).acknowledge(1)
    output.poll()
    assert producer(output).sent[2:] == [
        ("updates", 0, b"A"),
        ("updates", 0, b"B"),
        ("updates", 2, b"A"),
    ]
    assert (output.acknowledged, output.has_more) == (0, False)

    producer(output).acknowledge(2)
    output.poll()
    assert output.acknowledged == 0
    producer(output).acknowledge(1)
    output.poll()
    assert output.acknowledged == 1


def test_what_crosses_waits_for_all_that_crossed_before(output: Emitter) -> None:
    """Else it could be there while that has to be sent again."""
    emit(output, 1, ["a"], crossing("A"))
    emit(output, 2, ["b"], crossing("B"))
    emit(output, 3, ["c"])
    producer(output).acknowledge(3)
    output.poll()
    assert (values(output), output.acknowledged, output.has_more) == ("a b c A", 0, True)

    producer(output).acknowledge(1)
    output.poll()
    assert (values(output), output.acknowledged, output.has_more) == ("a b c A B", 1, False)

    producer(output).acknowledge(1)
    output.poll()
    assert output.acknowledged == 3


def test_what_nothing_has_to_come_before_is_sent_at_once(output: Emitter) -> None:
    emit(output, 1, [], crossing("A"))

    assert (values(output), output.acknowledged, output.has_more) == ("A", 0, False)


def test_flush_waits_for_both(output: Emitter) -> None:
    emit(output, 1, ["a"], crossing("A"))
    emit(output, 2, ["b"], crossing("B"))
    emit(output, 3, ["c"])

    output.flush()

    assert (values(output), output.acknowledged, len(producer(output))) == ("a b c A B", 3, 0)


@pytest.mark.parametrize("refused", ["a", "A"])
def test_nothing_crosses_behind_what_was_refused(output: Emitter, refused: str) -> None:
    emit(output, 1, ["a"], crossing("A"))
    emit(output, 2, ["b"], crossing("B"))
    if refused == "A":
        producer(output).acknowledge()
        output.poll()
    producer(output).acknowledge(1, KafkaError(KafkaError._TIMED_OUT))
    producer(output).acknowledge()

    with pytest.raises(Unavailable):
        output.poll()

    assert values(output) == ("a b" if refused == "a" else "a b A")
    assert output.acknowledged == 0


def test_a_full_queue_is_waited_for(output: Emitter) -> None:
    emit(output, 1, [])
    producer(output).room = 2
    some = [crossing(each, 0, 1) for each in "ABC"]

    emit(output, 2, [], *some)
    output.flush()

    assert output.acknowledged == 2
    for partition in (0, 1):
        assert [value for _, to, value in producer(output).sent if to == partition] == [
            b"A",
            b"B",
            b"C",
        ]
