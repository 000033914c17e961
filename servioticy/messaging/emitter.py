"""What the pipeline sends: stored updates, records for other partitions, dead letters."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaException, Message, Producer

from servioticy.domain.emissions import Emission
from servioticy.domain.letters import clipped, fitting, headers
from servioticy.domain.records import DeadLetter, EmittedRecord, LogRecord, read_emitted, write
from servioticy.domain.topics import MAX_MESSAGE_BYTES, Topics
from servioticy.errors import Rejected, Unavailable
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.consumer import emitted_from
from servioticy.messaging.failures import is_full, meaning
from servioticy.messaging.sending import SAFE, check_size, too_large

log = logging.getLogger("servioticy.messaging")

SHORT_LETTER_BYTES = 65_536
"""What is kept of a record that even the dead letters refuse: their topic may be smaller."""


class Emitter:
    """Sends what was stored to subscribers, and knows how far that is acknowledged.

    For one thread. `acknowledged` is the log offset before which everything emitted has
    been taken by the broker, or can never be taken: that is logged and in the dead letters.
    """

    def __init__(self, connection: KafkaConnection, topics: Topics, partition: int) -> None:
        self._connection = connection
        self._topics = topics
        self._partition = partition
        self._producer = Producer({**SAFE, **connection.for_librdkafka()})
        self._batches: deque[_Batch] = deque()
        self._side = _Batch(0, 0)  # forwarded records and dead letters
        self._letters: deque[DeadLetter] = deque()
        self.acknowledged = 0

    def emit(self, next_offset: int, emissions: Sequence[Emission]) -> None:
        """Send what was made from the log before this offset.

        Raises Unavailable where an earlier one was refused: what is not acknowledged has
        to be emitted again from the store.
        """
        batch = _Batch(next_offset, len(emissions))
        self._batches.append(batch)
        messages = [
            {"key": key, "value": value}
            for key, value in emissions
            if len(key) + len(value) <= MAX_MESSAGE_BYTES or batch.rejects(key, value)
        ]
        while messages:
            # One callback for all: to make one for each would cost as much as the sending.
            self._producer.produce_batch(
                self._topics.emitted, messages, self._partition, batch.delivered
            )
            messages = self._not_queued(messages, batch)
            if messages:  # its queue is full: let it drain, and hear what comes back
                self._served(self._producer.poll, 0.1)
                self._check()
        self.poll()

    def _not_queued(self, messages: list[dict[str, Any]], batch: _Batch) -> list[dict[str, Any]]:
        """Return those that found the queue full; what was refused by the client is noted."""
        again = []
        for each in messages:
            error = each.pop("_error", None)
            if error is None:
                continue
            if is_full(error):
                again.append(each)
            else:
                batch.ended(each["value"], error)
        return again

    def emitted_from(self, next_offset: int) -> list[EmittedRecord]:
        """Return what has been emitted with a place from this offset of the log on, by anybody.

        Raises Unavailable.
        """
        return emitted_from(self._connection, self._topics, self._partition, next_offset)

    def send_to_log(self, partition: int, record: LogRecord) -> None:
        """Forward a record to another partition of the log; `flush` tells that it is there.

        Raises Rejected where the record can never be in the log.
        """
        value = write(record)
        check_size(value, "a forwarded record")
        self._produce(self._topics.updates, value, partition, self._side.delivered_aside)

    def dead_letter(self, letter: DeadLetter) -> None:
        """Send a record to the dead letters; `flush` tells that it is there.

        A record larger than any other topic takes is cut, and the letter says so.
        """
        self._bury(fitting(letter))

    def _bury(self, letter: DeadLetter) -> None:
        def delivered(error: object, message: Message) -> None:
            if error is None or not isinstance(meaning(error, ""), Rejected):
                self._side.delivered_aside(error, message)
            elif len(letter.record) > SHORT_LETTER_BYTES:
                self._letters.append(fitting(letter, SHORT_LETTER_BYTES))
            else:
                log.error("dead_letter_lost", extra={**_about(letter), "why": str(error)})

        self._produce(
            self._topics.dead_letters, letter.record, 0, delivered, headers=headers(letter)
        )

    def poll(self) -> None:
        """Take note of acknowledgements. Raises Unavailable after a refusal."""
        self._served(self._producer.poll, 0)
        self._check()

    def flush(self, timeout_seconds: float = 30.0) -> None:
        """Wait until everything sent is acknowledged, or raise Unavailable."""
        while True:
            if self._served(self._producer.flush, timeout_seconds):
                raise Unavailable("the broker did not acknowledge what was emitted in time")
            self._check()
            if not len(self._producer):  # else what was refused goes to the dead letters
                return

    def _produce(
        self,
        topic: str,
        value: bytes,
        partition: int,
        done: Callable[[Any, Any], None],
        **more: Any,
    ) -> None:
        while True:
            try:
                self._producer.produce(topic, value, partition=partition, on_delivery=done, **more)
                return
            except (BufferError, KafkaException) as error:
                if not is_full(error):
                    done(error, None)
                    return
                self._served(self._producer.poll, 0.1)
                self._check_side()

    @staticmethod
    def _served(serve: Callable[[float], int], seconds: float) -> int:
        """Hear from the broker. Raises Unavailable where the producer is of no use any more."""
        try:
            return serve(seconds)
        except KafkaException as error:
            raise Unavailable(f"the producer has to be made anew: {error}") from error

    def _check_side(self) -> None:
        if self._side.refusal:
            raise Unavailable(self._side.refusal)

    def _check(self) -> None:
        self._check_side()
        while self._batches and not self._batches[0].waiting:
            batch = self._batches.popleft()
            if batch.refusal:
                raise Unavailable(batch.refusal)
            self._give_up(batch)
            self.acknowledged = batch.next_offset
        while self._letters:
            self._bury(self._letters.popleft())

    def _give_up(self, batch: _Batch) -> None:
        """What can never be emitted stops nobody: it is told, and kept where people look."""
        for value, error in batch.rejected:
            record = read_emitted(value)
            stream = f"{record.service_object}/{record.stream}"
            reason = f"update {record.timestamp} of {stream} ({len(value)} bytes): {error}"
            letter = DeadLetter(
                self._partition, batch.next_offset - 1, reason, value, kind="emitted"
            )
            self._letters.append(fitting(letter))
            log.error("emission_rejected", extra={**_about(letter), "stream": clipped(stream)})


class _Batch:
    """How many messages of one batch the broker still owes a word on."""

    __slots__ = ("next_offset", "refusal", "rejected", "waiting")

    def __init__(self, next_offset: int, waiting: int) -> None:
        self.next_offset = next_offset
        self.waiting = waiting
        self.refusal: str | None = None
        """Why a message has to be sent again."""
        self.rejected: list[tuple[bytes, Rejected]] = []
        """Those that can never be sent, and why."""

    def delivered(self, error: object, message: Message) -> None:
        """Note what the broker said of a message."""
        if error is None:
            self.waiting -= 1
        else:
            self.ended(message.value() or b"", error)

    def ended(self, value: bytes, error: object) -> None:
        """Note why a message was not delivered."""
        self.waiting -= 1
        failure = meaning(error, "an emitted update")
        if isinstance(failure, Rejected):
            self.rejected.append((value, failure))
        else:
            self.refusal = str(failure)

    def rejects(self, key: bytes, value: bytes) -> bool:
        """Note that a message is larger than any that is sent; False, as it is not to be."""
        self.waiting -= 1
        self.rejected.append((value, too_large(len(key) + len(value), "an emitted update")))
        return False

    def delivered_aside(self, error: object, _message: Message | None) -> None:
        if error is not None:
            self.refusal = str(meaning(error, "a record"))


def _about(letter: DeadLetter) -> dict[str, Any]:
    return {
        "partition": letter.partition,
        "offset": letter.offset,
        "why": clipped(letter.reason),
        "bytes": len(letter.record) if letter.whole_bytes is None else letter.whole_bytes,
    }
