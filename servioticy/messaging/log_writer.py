"""The log, written by the API: what is acknowledged is kept."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaException, Message, Producer

from servioticy.domain.letters import clipped
from servioticy.domain.records import LogRecord, write
from servioticy.domain.topics import Topics
from servioticy.errors import ServioticyError, Unavailable
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.failures import meaning
from servioticy.messaging.gaps import Gaps
from servioticy.messaging.replicas_behind import ReplicasBehind
from servioticy.messaging.sending import SAFE, Partitions, check_size

log = logging.getLogger("servioticy.messaging")

RENEWAL_SECONDS = 1.0
"""Between two producers that are replaced: what one met the next may meet at once."""


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
            **SAFE,
            **connection.for_librdkafka(),
            "delivery.timeout.ms": max(1000, int(timeout_seconds * 1000)),
        }
        self._producer = Producer(self._configuration)
        self._partitions = Partitions(self._topic)
        self._behind = ReplicasBehind(self._topic)
        self._gaps = Gaps()
        self.others_at = self._gaps.others_at
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
        check_size(value, "a record of the log")
        done = threading.Event()
        result: list[tuple[object, int]] = []

        def acknowledged(error: object, message: Message) -> None:
            offset = int(message.offset() or 0)
            if error is None:
                self._gaps.note(partition, offset)
            result.append((error, offset))
            done.set()

        try:
            self._partitions.reach(self._producer, partition)
            self._producer.produce(
                self._topic, value, partition=partition, on_delivery=acknowledged
            )
        except (BufferError, KafkaException) as error:
            raise meaning(error, "a record of the log") from error
        if not done.wait(self._timeout + 1):
            raise self._late()
        failure, offset = result[0]
        if failure is not None:
            raise self._refused(failure)
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
            check_size(value, "a record of the log")
            messages.setdefault(partition, []).append({"value": value})
        waiting = _Acknowledgements(len(records), self._gaps)
        for partition, own in messages.items():
            try:
                self._partitions.reach(self._producer, partition)
                self._producer.produce_batch(self._topic, own, partition, waiting.note)
            except (BufferError, KafkaException) as error:
                raise meaning(error, "a record of the log") from error
            for each in own:
                if "_error" in each:
                    raise meaning(each["_error"], "a record of the log")
        if not waiting.done.wait(self._timeout + 1):
            raise self._late()
        if waiting.failure is not None:
            raise self._refused(waiting.failure)

    def _late(self) -> Unavailable:
        return Unavailable(f"the broker did not acknowledge in time{self._why()}")

    def _refused(self, failure: object) -> ServioticyError:
        """What it means; of what is only late, with what the brokers tell."""
        found = meaning(failure, "a record of the log")
        if not isinstance(found, Unavailable):
            return found
        return meaning(failure, f"a record of the log{self._why()}")

    def _why(self) -> str:
        why = self._behind.why(self._producer)
        return f" ({why})" if why else ""

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

    __slots__ = ("_gaps", "_waiting", "done", "failure")

    def __init__(self, waiting: int, gaps: Gaps) -> None:
        self._waiting = waiting
        self._gaps = gaps
        self.done = threading.Event()
        self.failure: object = None
        """Why one of them is not in the log, the last of such reasons."""
        if not waiting:
            self.done.set()

    def note(self, error: object, message: Message) -> None:
        """Note that the broker has taken one, or has not."""
        if error is not None:
            self.failure = error
        else:
            self._gaps.note(message.partition() or 0, message.offset() or 0)
        self._waiting -= 1
        if not self._waiting:
            self.done.set()
