"""The log, written by the API: what is acknowledged is kept."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaException, Message

from servioticy.domain.letters import clipped
from servioticy.domain.records import LogRecord, write
from servioticy.domain.topics import Topics
from servioticy.errors import ServioticyError, Unavailable
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.failures import meaning
from servioticy.messaging.gaps import Gaps
from servioticy.messaging.grouped_producer import GroupedProducer, Part
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
        self._grouped = GroupedProducer(self._configuration)
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
        return self._append([(partition, record)])

    def append_all(self, records: Sequence[tuple[int, LogRecord]]) -> None:
        """Append each to its partition, in this order, and wait until the broker has all.

        Raises as `append` does. Of what is refused on the way, a full queue for one, more that
        follows may be in the log: whoever sends the rest again sends it out of order.
        """
        self._append(records)

    def _append(self, records: Sequence[tuple[int, LogRecord]]) -> int:
        """Append them; return the offset of the one that was acknowledged last."""
        messages: dict[int, list[dict[str, Any]]] = {}
        for partition, record in records:
            value = write(record)
            check_size(value, "a record of the log")
            messages.setdefault(partition, []).append({"value": value})
        waiting = _Acknowledgements(len(records), self._gaps)
        grouped, parts = self._grouped, list[Part]()
        try:
            for partition, own in messages.items():
                self._partitions.reach(grouped.producer, partition)
                parts.append(grouped.send(self._topic, partition, own, waiting.note))
            if not waiting.done.wait(self._timeout + 1):
                raise Unavailable(f"the broker did not acknowledge in time{self._why()}")
        except KafkaException as error:
            raise meaning(error, "a record of the log") from error
        finally:
            for each in parts:
                each.is_given_up = True
        if waiting.failure is not None:
            raise self._refused(waiting.failure)
        return waiting.offset

    def _refused(self, failure: object) -> ServioticyError:
        """What it means; of what is only late, with what the brokers tell."""
        found = meaning(failure, "a record of the log")
        if not isinstance(found, Unavailable):
            return found
        return meaning(failure, f"a record of the log{self._why()}")

    def _why(self) -> str:
        why = self._behind.why(self._grouped.producer)
        return f" ({why})" if why else ""

    def close(self) -> None:
        """Wait for what is under way and stop."""
        with contextlib.suppress(KafkaException):  # a fatal one: nothing is under way any more
            self._grouped.producer.flush(self._timeout)
        self._closed.set()
        self._poller.join()

    def _poll(self) -> None:
        """Tell those who wait. A fatal error is raised here, and once."""
        while not self._closed.is_set():
            try:
                self._grouped.producer.poll(0.2)
            except KafkaException as error:
                self._renew(error)
            except Exception:  # without this thread nothing would be acknowledged any more
                log.exception("log_writer_failed")

    def _renew(self, error: KafkaException) -> None:
        """Tell those who wait that nothing more comes, and let another producer follow."""
        log.error("log_writer_renewed", extra={"why": clipped(str(error))})
        with contextlib.suppress(KafkaException):
            self._grouped.producer.purge()
            self._grouped.producer.flush(1.0)
        # Until there is another one nothing is taken: who appends is told so at once.
        while not self._closed.wait(self._renewed_at + RENEWAL_SECONDS - time.monotonic()):
            self._renewed_at = time.monotonic()
            try:
                self._grouped = GroupedProducer(self._configuration)
                return
            except KafkaException:  # no thread is left, for one
                log.exception("log_writer_not_renewed")


class _Acknowledgements:
    """What the broker says of several records.

    Told by the poller's thread, and by those that appended what the client itself refuses.
    """

    __slots__ = ("_gaps", "_lock", "_waiting", "done", "failure", "offset")

    def __init__(self, waiting: int, gaps: Gaps) -> None:
        self._waiting = waiting
        self._gaps = gaps
        self._lock = threading.Lock()
        self.done = threading.Event()
        self.offset = 0
        """Of the one that was taken last."""
        self.failure: object = None
        """Why one of them is not in the log, the last of such reasons."""
        if not waiting:
            self.done.set()

    def note(self, error: object, message: Message | None) -> None:
        """Note that the broker has taken one, or has not."""
        if error is not None or message is None:
            self.failure = error
        else:
            self.offset = message.offset() or 0
            self._gaps.note(message.partition() or 0, self.offset)
        with self._lock:
            self._waiting -= 1
            is_last = not self._waiting
        if is_last:
            self.done.set()
