"""What is sent to subscribers, as the bytes that stand in the topic `emitted`.

A worker sends tens of thousands of these a second, so a record is put together from pieces of
which most are made once: `write` gives the same bytes for it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

import msgspec

from servioticy.domain.model import StreamRef, Timestamp
from servioticy.domain.records import EmittedRecord, write

Emission: TypeAlias = tuple[bytes, bytes]
"""The key and the value of a message: all of a stream have one key, so they stay in order."""

KEPT = 8192
"""Heads, and ends of places; each takes a few hundred bytes."""

_EMPTY = b'0,"update":0}'


class Head(NamedTuple):
    """What all emitted records of one version of a stream begin with, and their key."""

    key: bytes
    begin: bytes


@lru_cache(KEPT)
def head(stream: StreamRef, tenant: int, version: int) -> Head:
    """The head of the records of this version of a stream."""
    empty = EmittedRecord(*stream, tenant, version, 0, msgspec.Raw(b"0"))
    return Head(_key(empty), write(empty).removesuffix(_EMPTY))


def placed(
    head: Head,
    timestamp: Timestamp,
    update: bytes,
    offset: int,
    depth: int,
    path: tuple[int, ...],
) -> Emission:
    """The record of an update that was made at this place of the serial order."""
    key, begin = head
    end = _end(depth, path)
    return key, b'%b%d,"update":%b,"place":[%d%b' % (begin, timestamp, update, offset, end)


def emission(record: EmittedRecord) -> Emission:
    """A record as it is sent."""
    return _key(record), write(record)


@lru_cache(KEPT)
def _end(depth: int, path: tuple[int, ...]) -> bytes:
    return b"".join([b",%d" % each for each in (depth, *path)]) + b"]}"


def _key(record: EmittedRecord) -> bytes:
    return f"{record.service_object}/{record.stream}".encode()
