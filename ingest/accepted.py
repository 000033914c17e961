"""An accepted Sensor Update as it comes into the log."""

from __future__ import annotations

import time

import msgspec

from servioticy.domain.model import StreamRef, Timestamp
from servioticy.domain.records import UpdateRecord


def accepted(
    stream: StreamRef, timestamp: Timestamp, document: bytes, trace: str = ""
) -> UpdateRecord:
    """The record of an update that is accepted now: the log's time is the clock's of here."""
    at = time.time_ns() // 1_000_000
    return UpdateRecord(*stream, timestamp, msgspec.Raw(document), at=at, trace=trace)
