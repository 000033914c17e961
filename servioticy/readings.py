"""Telling a provider's partition what a Service Object of another tenant reads there."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from servioticy.domain.records import ReadingRecord
from servioticy.ports.change_store import Reading

MAX_SOURCES = 5_000
MAX_SOURCE_BYTES = 921_600
"""Of the streams that one record names."""


def reading_records(change: int, reading: Reading) -> Iterator[ReadingRecord]:
    """Yield the records that say so, one or several of the same change."""
    pieces = list(_pieces(reading.sources))
    for number, sources in enumerate(pieces, 1):
        yield ReadingRecord(
            reading.reader,
            reading.tenant,
            reading.provider,
            reading.to_partition,
            sources,
            change,
            ends=number == len(pieces),
        )


def _pieces(sources: tuple[tuple[str, str], ...]) -> Iterator[tuple[tuple[str, str], ...]]:
    """Cut into as few as can be, one at least."""
    piece: list[tuple[str, str]] = []
    size = 0
    for each in sources:
        own = len(msgspec.json.encode(each)) + 1
        if piece and (len(piece) == MAX_SOURCES or size + own > MAX_SOURCE_BYTES):
            yield tuple(piece)
            piece, size = [], 0
        piece.append(each)
        size += own
    yield tuple(piece)
