"""Bundles: many records of the log in one binary value, as Spark's JVM hands them over.

The Java classes of `deploy/java/bundles` write them. A record is its offset, the length of
its value (-1: it has none), and the value. Before the bundles of a task comes its partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from pipeline.work import Row

MAX_BYTES = 1024 * 1024
"""Of one bundle, unless a single record is larger. As much waits in the JVM beside it."""

MAX_RECORDS = 1000

_PARTITION = Struct(">i")
_HEAD = Struct(">qi")
_NONE = -1


def partition(head: bytes) -> int:
    """Return of which partition the bundles are that follow."""
    found: int = _PARTITION.unpack(head)[0]
    return found


def unpack(bundle: bytes) -> list[Row]:
    """Return the records of a bundle."""
    rows = []
    at, end = 0, len(bundle)
    while at < end:
        offset, length = _HEAD.unpack_from(bundle, at)
        at += _HEAD.size
        if length == _NONE:
            rows.append(Row(offset, None))
            continue
        rows.append(Row(offset, bundle[at : at + length]))
        at += length
    return rows


def pack(rows: Iterable[Row]) -> bytes:
    """Return the rows as one bundle: what the JVM does, for benchmarks and tests."""
    parts = []
    for offset, value in rows:
        length = _NONE if value is None else len(value)
        parts += [_HEAD.pack(offset, length), value or b""]
    return b"".join(parts)
