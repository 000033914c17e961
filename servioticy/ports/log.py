"""The log of accepted updates and control records, for whoever appends to it."""

from __future__ import annotations

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
