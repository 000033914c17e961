"""The Log in memory."""

from __future__ import annotations

from collections.abc import Sequence

from memory.state import State
from servioticy.domain.records import LogRecord, read_record, write
from servioticy.domain.topics import MAX_MESSAGE_BYTES
from servioticy.errors import Rejected
from servioticy.messaging.gaps import Gaps


class MemoryLog:
    """Appending to the log, and where it ends. Records are kept as bytes, as in the broker."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._gaps = Gaps()
        self.others_at = self._gaps.others_at

    def append(self, partition: int, record: LogRecord) -> int:
        """Append and return the offset once it is safe. Raises Unavailable, Rejected."""
        self._state.ask_broker()
        value = _written(record)
        with self._state.lock:
            return self._add(partition, value)

    def append_all(self, records: Sequence[tuple[int, LogRecord]]) -> None:
        """Append each to its partition, in this order. Raises Unavailable, Rejected."""
        self._state.ask_broker()
        values = [(partition, _written(record)) for partition, record in records]
        with self._state.lock:
            for partition, value in values:
                self._add(partition, value)

    def _add(self, partition: int, value: bytes) -> int:
        records = self._state.log[partition]
        records.append(value)
        self._gaps.note(partition, len(records) - 1)
        return len(records) - 1

    def end_offset(self, partition: int) -> int:
        """Return the offset the next record will get."""
        self._state.ask_broker()
        return len(self._state.log[partition])

    def record(self, _caller: int, partition: int, offset: int) -> LogRecord | None:
        """Return what stands there; None where nothing does. Raises Unavailable."""
        self._state.ask_broker()
        values = self._state.log[partition]
        return read_record(values[offset]) if 0 <= offset < len(values) else None

    def partitions(self) -> int:
        """Return how many partitions there are."""
        return len(self._state.log)

    def records(self, partition: int, first_offset: int = 0) -> list[tuple[int, LogRecord]]:
        """Return what stands in a partition from an offset on, with each one's offset."""
        values = list(self._state.log[partition])
        return [
            (offset, read_record(values[offset])) for offset in range(first_offset, len(values))
        ]


def _written(record: LogRecord) -> bytes:
    value = write(record)
    if len(value) > MAX_MESSAGE_BYTES:
        raise Rejected(f"a record of the log can never be sent: {len(value)} bytes")
    return value
