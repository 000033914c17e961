"""One request of a partition at a time, everything in its order, and a word about each message."""

from __future__ import annotations

import random
import threading
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import KafkaError, KafkaException

from servioticy.messaging import grouped_producer
from servioticy.messaging.grouped_producer import GroupedProducer

FULL = KafkaError(KafkaError._QUEUE_FULL)


class PlayedClient:
    """Takes requests, and answers when the test lets it."""

    def __init__(self, _configuration: dict[str, Any]) -> None:
        self.requests: list[tuple[str, int, list[dict[str, Any]]]] = []
        self.refused: set[bytes] = set()
        self.fault: Exception | None = None

    def produce_batch(self, topic: str, messages: list[dict[str, Any]], partition: int) -> None:
        if self.fault is not None:
            raise self.fault
        queued = []
        for each in messages:
            if each["value"] in self.refused:
                each["_error"] = FULL
            else:
                queued.append(each)
        if queued:
            self.requests.append((topic, partition, queued))

    def answer(self, number: int = 0, error: object = None) -> None:
        for each in self.requests.pop(number)[2]:
            each["callback"](error, mock.Mock(value=lambda each=each: each["value"]))

    def values(self) -> list[list[bytes]]:
        return [[each["value"] for each in messages] for _, _, messages in self.requests]


@pytest.fixture
def grouped(monkeypatch: pytest.MonkeyPatch) -> GroupedProducer:
    monkeypatch.setattr(grouped_producer, "Producer", PlayedClient)
    return GroupedProducer({})


def send(grouped: GroupedProducer, *values: bytes, partition: int = 0) -> tuple[list[Any], Any]:
    told: list[Any] = []
    part = grouped.send(
        "log", partition, [{"value": each} for each in values], lambda e, _m: told.append(e)
    )
    return told, part


def test_what_comes_while_a_request_is_under_way_goes_together(grouped: GroupedProducer) -> None:
    client: Any = grouped.producer
    told = [send(grouped, each)[0] for each in (b"1", b"2", b"3")]
    elsewhere, _ = send(grouped, b"4", partition=1)

    assert client.values() == [[b"1"], [b"4"]], "another partition waits for nothing"
    client.answer()
    assert (told, elsewhere) == ([[None], [], []], [])
    assert client.values() == [[b"4"], [b"2", b"3"]]
    client.answer(1)
    send(grouped, b"5")
    assert (told, client.values()) == ([[None], [None], [None]], [[b"4"], [b"5"]])


def test_what_nobody_waits_for_any_more_is_not_sent(grouped: GroupedProducer) -> None:
    client: Any = grouped.producer
    send(grouped, b"1")
    told, part = send(grouped, b"2")
    send(grouped, b"3")
    part.is_given_up = True

    client.answer(error="timed out")
    assert client.values() == [[b"3"]] and told == []


@pytest.mark.parametrize("fault", [BufferError("full"), KafkaException(FULL)])
def test_what_the_client_refuses_is_told_and_holds_nobody_up(
    grouped: GroupedProducer, fault: Exception
) -> None:
    client: Any = grouped.producer
    client.fault = fault
    assert send(grouped, b"1", b"2")[0] == [fault, fault]
    client.fault, client.refused = None, {b"3"}
    told, _ = send(grouped, b"3", b"4", b"5")

    assert told == [FULL] and client.values() == [[b"4", b"5"]]
    alone, _ = send(grouped, b"3")
    client.answer()
    assert told == [FULL, None, None] and alone == [FULL], "and nothing is under way"
    assert send(grouped, b"6")[0] == [] and client.values() == [[b"6"]]


def test_a_message_that_is_told_twice_counts_once(grouped: GroupedProducer) -> None:
    """A client may raise, and have queued some nevertheless."""
    client: Any = grouped.producer
    messages = [{"value": b"1"}]
    client.fault = BufferError("full")
    grouped.send("log", 0, messages, told := mock.Mock())
    messages[0]["callback"](None, mock.Mock())
    client.fault = None

    assert told.call_count == 1
    assert send(grouped, b"2")[0] == [] and client.values() == [[b"2"]]


def test_nothing_is_sent_of_nothing(grouped: GroupedProducer) -> None:
    send(grouped)

    assert grouped.producer.requests == []  # type: ignore[attr-defined]


def test_all_of_many_threads_come_once_and_each_threads_in_its_order(
    grouped: GroupedProducer,
) -> None:
    client: Any = grouped.producer
    came: list[bytes] = []
    sent = threading.Barrier(5)

    def sender(name: int) -> None:
        for number in range(200):
            done = threading.Event()
            told = mock.Mock(side_effect=lambda *_, done=done: done.set())
            grouped.send("log", 0, [{"value": b"%d-%d" % (name, number)}], told)
            assert done.wait(60)
        sent.wait(60)

    threads = [threading.Thread(target=sender, args=(each,), daemon=True) for each in range(4)]
    for each in threads:
        each.start()
    sizes: list[int] = []
    while len(came) < 800:
        if client.requests:
            assert len(client.requests) == 1
            values = client.values()[0]
            came += values
            sizes.append(len(values))
            client.answer()
        elif random.random() < 0.1:
            threading.Event().wait(0.0001)
    sent.wait(60)

    assert max(sizes) <= 4
    for name in range(4):
        own = [each for each in came if each.startswith(b"%d-" % name)]
        assert own == [b"%d-%d" % (name, number) for number in range(200)]
