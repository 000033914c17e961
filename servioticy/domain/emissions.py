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
"""Ends of places, about a hundred bytes each."""

_EMPTY = b'0,"update":0}'
_ID = len(b'{"service_object":"')


class Head(NamedTuple):
    """What all emitted records of one version of a stream begin with, and their key."""

    key: bytes
    whose: bytes
    """The Service Object: all its streams share this."""
    begin: bytes
    """What follows: all Service Objects that are alike share that."""


def head(stream: StreamRef, tenant: int, version: int) -> Head:
    """Return the head of the records of this version of a stream."""
    key = f"{stream.service_object}/{stream.stream}".encode()
    return Head(key, _whose(stream.service_object), _begin(stream.stream, tenant, version))


@lru_cache(KEPT)
def _whose(service_object: str) -> bytes:
    return _written(service_object, "", 0, 0).removesuffix(_written("", "", 0, 0)[_ID:])


@lru_cache(KEPT)
def _begin(stream: str, tenant: int, version: int) -> bytes:
    return _written("", stream, tenant, version)[_ID:].removesuffix(_EMPTY)


def forget() -> None:
    """Forget what records begin and end with; it is written again when it is needed.

    It is little, but one of a thousand devices in each page of memory keeps all pages.
    """
    for each in (_whose, _begin, _end):
        each.cache_clear()


def _written(service_object: str, stream: str, tenant: int, version: int) -> bytes:
    return write(EmittedRecord(service_object, stream, tenant, version, 0, msgspec.Raw(b"0")))


def placed(
    head: Head,
    timestamp: Timestamp,
    update: bytes,
    offset: int,
    path: tuple[int, ...],
    trace: str = "",
) -> Emission:
    """Return the record of an update that was made at this place of the serial order."""
    key, whose, begin = head
    end = _end(path)
    if trace:
        end = b'%b,"trace":"%b"}' % (end[:-1], trace.encode())
    return key, b'%b%b%d,"update":%b,"place":[%d%b' % (
        whose,
        begin,
        timestamp,
        update,
        offset,
        end,
    )


def emission(record: EmittedRecord) -> Emission:
    """Return a record as it is sent."""
    return _key(record), write(record)


@lru_cache(KEPT)
def _end(path: tuple[int, ...]) -> bytes:
    return b"".join([b",%d" % each for each in (len(path), *path)]) + b"]}"


def keyed(key: bytes | None) -> StreamRef | None:
    """Return the stream that a message's key names; None where it is no key of ours."""
    try:
        service_object, divided, stream = (key or b"").decode().partition("/")
    except UnicodeDecodeError:
        return None
    return StreamRef(service_object, stream) if divided else None


def _key(record: EmittedRecord) -> bytes:
    return f"{record.service_object}/{record.stream}".encode()
