"""A producer of which each partition has one request under way: what comes then goes together.

librdkafka has no second one under way where it has to keep an order, and while more waits behind
the first it asks without a pause whether that has been answered: half a millisecond of the
processor a request, which others would have. So here it is not told of the rest before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from confluent_kafka import KafkaException, Message, Producer

Note: TypeAlias = Callable[[Any, Message | None], None]
"""What is told of a message: why it has not arrived, or None and where it is."""


class Part:
    """What one caller sends to one partition."""

    __slots__ = ("_left", "_note", "_turn", "is_given_up", "messages")

    def __init__(self, messages: list[dict[str, Any]], note: Note, turn: _Turn) -> None:
        self.messages = messages
        self.is_given_up = False
        """Whether nobody waits for it any more: what has not been sent yet is not."""
        self._left = len(messages)
        self._note = note
        self._turn = turn

    def ended(self, error: object, message: Message | None) -> None:
        """Note what became of a message of it."""
        if self._left:
            self._left -= 1
            self._note(error, message)
            self._turn.ended()


class _Turn:
    """One partition's. The request that is under way is noted by whoever polls."""

    def __init__(self, producer: Producer, topic: str, partition: int) -> None:
        self._producer = producer
        self._place = topic, partition
        self._lock = threading.Lock()
        self._under_way = 0
        self._waiting: list[Part] = []

    def take(self, part: Part) -> None:
        """Send it, or let it wait until nothing else is under way."""
        with self._lock:
            if self._under_way:
                self._waiting.append(part)
                return
            self._under_way = len(part.messages)
        self._send([part])

    def ended(self) -> None:
        """Note that one message is under way no more; behind the last what waits is sent."""
        with self._lock:
            self._under_way -= 1
            if self._under_way:
                return
            parts = [each for each in self._waiting if not each.is_given_up]
            self._waiting.clear()
            self._under_way = sum(len(each.messages) for each in parts)
        if parts:
            self._send(parts)

    def _send(self, parts: list[Part]) -> None:
        topic, partition = self._place
        messages = []
        for part in parts:
            for each in part.messages:
                each["callback"] = part.ended
                messages.append(each)
        try:
            self._producer.produce_batch(topic, messages, partition)
        except (BufferError, KafkaException) as error:
            for each in messages:
                each.setdefault("_error", error)
        for each in messages:
            if "_error" in each:  # it is not queued, so nobody else tells of it
                each["callback"](each["_error"], None)


class GroupedProducer:
    """Sends for several threads; one of them has to `poll`."""

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        """Raises KafkaException."""
        self.producer = Producer(dict(configuration))
        self._turns: dict[tuple[str, int], _Turn] = {}

    def send(self, topic: str, partition: int, messages: list[dict[str, Any]], note: Note) -> Part:
        """Send these in their order, behind all that was sent there before.

        `note` is told of each of them, by this thread or by the one that polls.
        """
        place = topic, partition
        turn = self._turns.get(place) or self._turns.setdefault(
            place, _Turn(self.producer, topic, partition)
        )
        part = Part(messages, note, turn)
        if messages:
            turn.take(part)
        return part
