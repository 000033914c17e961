"""The log of accepted updates and control records, for whoever appends to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from servioticy.domain.records import LogRecord


class Log(Protocol):
    """Appending to the log, and where it ends."""

    def append(self, partition: int, record: LogRecord) -> int:
        """Append and return the offset once it is safe. Raises Unavailable.

        Raises Rejected where the record is too large to be ever in the log.
        """

    def end_offset(self, partition: int) -> int:
        """Return the offset the next record will get."""

    def partitions(self) -> int:
        """Return how many partitions there are."""


class BatchLog(Log, Protocol):
    """The log, for whoever accepts many updates at once."""

    def append_all(self, records: Sequence[tuple[int, LogRecord]]) -> None:
        """Append each to its partition, in this order; return once all of them are safe.

        Raises Unavailable: some of them may be in the log, and nothing may be promised. Raises
        Rejected where one is too large to be ever in the log; then none of them is there.
        """


class ReadableLog(Protocol):
    """The log, for whoever looks at a single record of it now and then."""

    def record(self, caller: int, partition: int, offset: int) -> LogRecord | None:
        """Return what stands there; None where the log has it no more, or not yet.

        None as well where nobody can read it. Of several tenants that ask (`caller`) each has its
        turn. Raises Unavailable.
        """


class SharedLog(BatchLog, ReadableLog, Protocol):
    """The log, for whoever wants to know whether others append to it."""

    def others_at(self, partition: int) -> float:
        """Return when another writer's record was last met there, by the monotonic clock.

        It is met by the next record that is appended here, another process's as well as the
        pipeline's own; far in the past where there was none.
        """
