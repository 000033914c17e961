"""What the pipeline sends: stored updates, records for other partitions, dead letters.

What crosses borders follows the updates that its batch has emitted, once these and all before are
acknowledged: so whoever finds it in the log knows that nothing of what it came from is missing.
"""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict, deque
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
from servioticy.messaging.sending import SAFE, Partitions, check_size
from servioticy.messaging.under_way import UnderWay
from servioticy.ports.borders import Crossing

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
        self._log_partitions = Partitions(topics.updates)
        self._batches: deque[UnderWay] = deque()
        self._side = UnderWay(0)  # forwarded records and dead letters
        self._letters: deque[DeadLetter] = deque()
        self.acknowledged = 0

    @property
    def has_more(self) -> bool:
        """Whether something is sent on by the next `poll` once what is under way has arrived."""
        return any(each.unsent for each in self._batches)

    def emit(
        self, next_offset: int, emissions: Sequence[Emission], crossings: Sequence[Crossing] = ()
    ) -> None:
        """Send what was made from the log before this offset, and then what crosses borders.

        Raises Unavailable where an earlier one was refused: what is not acknowledged has
        to be emitted again from the store.
        """
        batch = UnderWay(next_offset, len(emissions), ends=not crossings)
        self._batches.append(batch)
        if crossings:
            waiting = sum(len(each.partitions) for each in crossings)
            self._batches.append(UnderWay(next_offset, waiting, unsent=tuple(crossings)))
        messages = [
            {"key": key, "value": value}
            for key, value in emissions
            if len(key) + len(value) <= MAX_MESSAGE_BYTES
            or batch.rejects(value, len(key) + len(value))
        ]
        # Its queue may be full: let it drain, and hear what comes back.
        self._send(self._topics.emitted, messages, self._partition, batch, self._check)
        self.poll()

    def _send(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int,
        batch: UnderWay,
        check: Callable[[], None],
    ) -> None:
        while messages:
            # One callback for all: to make one for each would cost as much as the sending.
            self._producer.produce_batch(topic, messages, partition, batch.delivered)
            messages = self._not_queued(messages, batch)
            if messages:
                self._served(self._producer.poll, 0.1)
                check()

    def _send_crossings(self, batch: UnderWay) -> None:
        """Send them to their partitions, to each in their order."""
        messages: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
        for each in batch.pop_unsent():
            for partition in each.partitions:
                if len(each.record) <= MAX_MESSAGE_BYTES or batch.rejects(each.record):
                    messages[partition].append({"value": each.record})
        for partition, some in messages.items():
            self._reach(partition)
            self._send(self._topics.updates, some, partition, batch, self._check_side)

    def _reach(self, partition: int) -> None:
        """Let the producer know of a partition of the log; else it refuses what goes there."""
        with contextlib.suppress(KafkaException):  # the broker is away: it may know by then
            self._log_partitions.reach(self._producer, partition)

    def _not_queued(self, messages: list[dict[str, Any]], batch: UnderWay) -> list[dict[str, Any]]:
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
        self._reach(partition)
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
            # Else what was refused goes to the dead letters, or what crosses borders on its way.
            if not len(self._producer) and not self._batches:
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
        while self._batches:
            batch = self._batches[0]
            if batch.unsent:
                self._send_crossings(batch)
            if batch.waiting:
                break
            self._batches.popleft()
            if batch.refusal:
                raise Unavailable(batch.refusal)
            self._give_up(batch)
            if batch.ends:
                self.acknowledged = batch.next_offset
        while self._letters:
            self._bury(self._letters.popleft())

    def _give_up(self, batch: UnderWay) -> None:
        """What can never be sent stops nobody: it is told, and kept where people look."""
        if batch.offsets:
            self._give_up_crossings(batch)
            return
        for value, error in batch.rejected:
            record = read_emitted(value)
            stream = f"{record.service_object}/{record.stream}"
            reason = f"update {record.timestamp} of {stream} ({len(value)} bytes): {error}"
            letter = DeadLetter(
                self._partition, batch.next_offset - 1, reason, value, kind="emitted"
            )
            self._letters.append(fitting(letter))
            log.error("emission_rejected", extra={**_about(letter), "stream": clipped(stream)})

    def _give_up_crossings(self, batch: UnderWay) -> None:
        """One letter for a record, to however many partitions it was to go."""
        for value, error in dict(batch.rejected).items():
            reason = f"a record that crosses a border ({len(value)} bytes): {error}"
            letter = DeadLetter(self._partition, batch.offsets[value], reason, value)
            self._letters.append(fitting(letter))
            log.error("crossing_rejected", extra=_about(letter))


def _about(letter: DeadLetter) -> dict[str, Any]:
    return {
        "partition": letter.partition,
        "offset": letter.offset,
        "why": clipped(letter.reason),
        "bytes": len(letter.record) if letter.whole_bytes is None else letter.whole_bytes,
    }
