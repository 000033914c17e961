"""Writing to topics so that what is acknowledged is kept (acks=all, idempotent, in order)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaException, Message, Producer

from servioticy.errors import Unavailable
from servioticy.messaging.records import DeadLetter, EmittedRecord, LogRecord, write
from servioticy.messaging.topics import MAX_MESSAGE_BYTES, Topics

_SAFE = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.max.bytes": MAX_MESSAGE_BYTES,
    "log_level": 2,
}


class LogWriter:
    """Appends to the log and waits for the broker's word. Safe to share between threads."""

    def __init__(self, bootstrap_servers: str, topics: Topics, timeout_seconds: float) -> None:
        self._topic = topics.updates
        self._timeout = timeout_seconds
        self._producer = Producer(
            {
                **_SAFE,
                "bootstrap.servers": bootstrap_servers,
                "delivery.timeout.ms": max(1000, int(timeout_seconds * 1000)),
            }
        )
        self._closed = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="log-writer", daemon=True)
        self._poller.start()

    def append(self, partition: int, record: LogRecord) -> int:
        """Append one record and return its offset once the broker has it.

        Raises Unavailable where it has not said so in time: the record may or may not be
        in the log, and the caller must not promise anything.
        """
        done = threading.Event()
        result: list[int | str] = []

        def acknowledged(error: object, message: Message) -> None:
            result.append(str(error) if error is not None else int(message.offset() or 0))
            done.set()

        try:
            self._producer.produce(
                self._topic, write(record), partition=partition, on_delivery=acknowledged
            )
        except (BufferError, KafkaException) as error:
            raise Unavailable(f"the broker does not take updates: {error}") from error
        if not done.wait(self._timeout + 1):
            raise Unavailable("the broker did not acknowledge in time")
        offset = result[0]
        if isinstance(offset, str):
            raise Unavailable(f"the broker did not acknowledge: {offset}")
        return offset

    def close(self) -> None:
        """Wait for what is under way and stop."""
        self._producer.flush(self._timeout)
        self._closed.set()
        self._poller.join()

    def _poll(self) -> None:
        while not self._closed.is_set():
            self._producer.poll(0.2)


class Emitter:
    """Sends what was stored to subscribers, and knows how far that is acknowledged.

    For one thread. `acknowledged` is the log offset before which everything emitted has
    been taken by the broker.
    """

    def __init__(self, bootstrap_servers: str, topics: Topics, partition: int) -> None:
        self._topics = topics
        self._partition = partition
        self._producer = Producer(
            {
                **_SAFE,
                "bootstrap.servers": bootstrap_servers,
                "queue.buffering.max.messages": 500_000,
            }
        )
        self._batches: deque[_Batch] = deque()
        self._side = _Batch(0, 0)  # forwarded records and dead letters
        self.acknowledged = 0

    def emit(self, next_offset: int, updates: Sequence[EmittedRecord]) -> None:
        """Send the updates made from the log before this offset.

        Raises Unavailable where an earlier one was refused: what is not acknowledged has
        to be emitted again from the store.
        """
        batch = _Batch(next_offset, len(updates))
        self._batches.append(batch)
        messages = [
            {
                "key": f"{each.service_object}/{each.stream}",
                "value": write(each),
                "callback": batch.delivered,
            }
            for each in updates
        ]
        while messages:
            self._producer.produce_batch(self._topics.emitted, messages, self._partition)
            # Those that found the queue full are tried again; it drains meanwhile.
            messages = [each for each in messages if each.pop("_error", None) is not None]
            if messages:
                self._producer.poll(0.1)
        self.poll()

    def send_to_log(self, partition: int, record: LogRecord) -> None:
        """Forward a record to another partition of the log; `flush` tells that it is there."""
        self._produce(self._topics.updates, write(record), None, partition, self._side.delivered)

    def bury(self, letter: DeadLetter) -> None:
        """Send a record to the dead letters; `flush` tells that it is there."""
        self._produce(self._topics.dead_letters, write(letter), None, 0, self._side.delivered)

    def poll(self) -> None:
        """Take note of acknowledgements. Raises Unavailable after a refusal."""
        self._producer.poll(0)
        self._check()

    def flush(self, timeout_seconds: float = 30.0) -> None:
        """Wait until everything sent is acknowledged, or raise Unavailable."""
        if self._producer.flush(timeout_seconds):
            raise Unavailable("the broker did not acknowledge what was emitted in time")
        self._check()

    def _produce(
        self,
        topic: str,
        value: bytes,
        key: str | None,
        partition: int,
        done: Callable[[Any, Any], None],
    ) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, partition, on_delivery=done)
                return
            except BufferError:  # its queue is full: let it drain
                self._producer.poll(0.1)

    def _check(self) -> None:
        if self._side.refusal:
            raise Unavailable(f"the broker refused a record: {self._side.refusal}")
        while self._batches and not self._batches[0].waiting:
            batch = self._batches.popleft()
            if batch.refusal:
                raise Unavailable(f"the broker refused an emitted update: {batch.refusal}")
            self.acknowledged = batch.next_offset


class _Batch:
    """How many messages of one batch the broker still owes a word on."""

    __slots__ = ("next_offset", "refusal", "waiting")

    def __init__(self, next_offset: int, waiting: int) -> None:
        self.next_offset = next_offset
        self.waiting = waiting
        self.refusal: str | None = None

    def delivered(self, error: object, _message: Message) -> None:
        self.waiting -= 1
        if error is not None:
            self.refusal = str(error)
