"""Writing to topics so that what is acknowledged is kept (acks=all, idempotent, in order)."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaException, Message, Producer

from servioticy.domain.emissions import Emission
from servioticy.domain.letters import clipped, fitting, headers
from servioticy.domain.records import DeadLetter, EmittedRecord, LogRecord, read_emitted, write
from servioticy.domain.topics import FRAME_BYTES, MAX_LETTER_BYTES, MAX_MESSAGE_BYTES, Topics
from servioticy.errors import Rejected, Unavailable
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.consumer import emitted_from
from servioticy.messaging.failures import is_full, meaning

log = logging.getLogger("servioticy.messaging")

QUEUE_KIB = 65_536
"""Most that a client holds of what the broker has not taken: bounded by bytes, not by number."""

QUEUE_MESSAGES = 500_000
"""More than batches under way hold: the bound by bytes is to be met first."""

SHORT_LETTER_BYTES = 65_536
"""What is kept of a record that even the dead letters refuse: their topic may be smaller."""

RENEWAL_SECONDS = 1.0
"""Between two producers that are replaced: what one met the next may meet at once."""

_SAFE = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.max.bytes": MAX_LETTER_BYTES + FRAME_BYTES,
    "queue.buffering.max.kbytes": QUEUE_KIB,
    "log_level": 2,
}


class LogWriter:
    """Appends to the log and waits for the broker's word. Safe to share between threads.

    A producer that meets a fatal error takes nothing any more, however long one waits: the
    broker has lost what it knew of the producer, for one. Another one takes its place.
    """

    def __init__(
        self, connection: KafkaConnection, topics: Topics, timeout_seconds: float
    ) -> None:
        self._topic = topics.updates
        self._timeout = timeout_seconds
        self._configuration = {
            **_SAFE,
            **connection.for_librdkafka(),
            "delivery.timeout.ms": max(1000, int(timeout_seconds * 1000)),
            "queue.buffering.max.messages": QUEUE_MESSAGES,
        }
        self._producer = Producer(self._configuration)
        self._renewed_at = -RENEWAL_SECONDS
        self._closed = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="log-writer", daemon=True)
        self._poller.start()

    def append(self, partition: int, record: LogRecord) -> int:
        """Append one record and return its offset once the broker has it.

        Raises Unavailable where it has not said so in time: the record may or may not be
        in the log, and the caller must not promise anything. Raises Rejected where the
        record can never be in the log.
        """
        value = write(record)
        _check_size(value, "a record of the log")
        done = threading.Event()
        result: list[tuple[object, int]] = []

        def acknowledged(error: object, message: Message) -> None:
            result.append((error, int(message.offset() or 0)))
            done.set()

        try:
            self._producer.produce(
                self._topic, value, partition=partition, on_delivery=acknowledged
            )
        except (BufferError, KafkaException) as error:
            raise meaning(error, "a record of the log") from error
        if not done.wait(self._timeout + 1):
            raise Unavailable("the broker did not acknowledge in time")
        failure, offset = result[0]
        if failure is not None:
            raise meaning(failure, "a record of the log")
        return offset

    def append_all(self, records: Sequence[tuple[int, LogRecord]]) -> None:
        """Append each to its partition, in this order, and wait until the broker has all.

        Raises as `append` does. Of what is refused on the way, a full queue for one, more that
        follows may be in the log: whoever sends the rest again sends it out of order.
        """
        # A call for each partition: librdkafka would not heed one that a message names.
        messages: dict[int, list[dict[str, Any]]] = {}
        for partition, record in records:
            value = write(record)
            _check_size(value, "a record of the log")
            messages.setdefault(partition, []).append({"value": value})
        waiting = _Acknowledgements(len(records))
        for partition, own in messages.items():
            try:
                self._producer.produce_batch(self._topic, own, partition, waiting.note)
            except (BufferError, KafkaException) as error:
                raise meaning(error, "a record of the log") from error
            for each in own:
                if "_error" in each:
                    raise meaning(each["_error"], "a record of the log")
        if not waiting.done.wait(self._timeout + 1):
            raise Unavailable("the broker did not acknowledge in time")
        if waiting.failure is not None:
            raise meaning(waiting.failure, "a record of the log")

    def close(self) -> None:
        """Wait for what is under way and stop."""
        with contextlib.suppress(KafkaException):  # a fatal one: nothing is under way any more
            self._producer.flush(self._timeout)
        self._closed.set()
        self._poller.join()

    def _poll(self) -> None:
        """Tell those who wait. A fatal error is raised here, and once."""
        while not self._closed.is_set():
            try:
                self._producer.poll(0.2)
            except KafkaException as error:
                self._renew(error)
            except Exception:  # without this thread nothing would be acknowledged any more
                log.exception("log_writer_failed")

    def _renew(self, error: KafkaException) -> None:
        """Tell those who wait that nothing more comes, and let another producer follow."""
        log.error("log_writer_renewed", extra={"why": clipped(str(error))})
        with contextlib.suppress(KafkaException):
            self._producer.purge()
            self._producer.flush(1.0)
        # Until there is another one nothing is taken: who appends is told so at once.
        while not self._closed.wait(self._renewed_at + RENEWAL_SECONDS - time.monotonic()):
            self._renewed_at = time.monotonic()
            try:
                self._producer = Producer(self._configuration)
                return
            except KafkaException:  # no thread is left, for one
                log.exception("log_writer_not_renewed")


class _Acknowledgements:
    """What the broker says of several records; told by the poller's thread alone."""

    __slots__ = ("_waiting", "done", "failure")

    def __init__(self, waiting: int) -> None:
        self._waiting = waiting
        self.done = threading.Event()
        self.failure: object = None
        """Why one of them is not in the log, the last of such reasons."""
        if not waiting:
            self.done.set()

    def note(self, error: object, _message: Message) -> None:
        """Note that the broker has taken one, or has not."""
        if error is not None:
            self.failure = error
        self._waiting -= 1
        if not self._waiting:
            self.done.set()


class Emitter:
    """Sends what was stored to subscribers, and knows how far that is acknowledged.

    For one thread. `acknowledged` is the log offset before which everything emitted has
    been taken by the broker, or can never be taken: that is logged and in the dead letters.
    """

    def __init__(self, connection: KafkaConnection, topics: Topics, partition: int) -> None:
        self._connection = connection
        self._topics = topics
        self._partition = partition
        self._producer = Producer(
            {
                **_SAFE,
                **connection.for_librdkafka(),
                "queue.buffering.max.messages": QUEUE_MESSAGES,
            }
        )
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
        _check_size(value, "a forwarded record")
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
        self.rejected.append((value, _too_large(len(key) + len(value), "an emitted update")))
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


def _check_size(value: bytes, about: str) -> None:
    """Raises Rejected: the topics are made for so much and not a byte more."""
    if len(value) > MAX_MESSAGE_BYTES:
        raise _too_large(len(value), about)


def _too_large(size: int, about: str) -> Rejected:
    return Rejected(f"{about} can never be sent: {size} bytes, at most {MAX_MESSAGE_BYTES}")
