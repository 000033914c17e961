"""Durable subscriptions and how far each has been acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import orjson

from servioticy.domain.model import StreamKey, StreamRef, Timestamp


class StoredCursor(NamedTuple):
    """How far a subscription has got, as it is stored."""

    offsets: Mapping[int, int] = {}
    """By partition of the topic `emitted`, the offset of the next record; empty: not begun."""
    history: Mapping[StreamRef, Timestamp] = {}
    """Of each of these streams, the history from after this timestamp on is to come first."""
    since: Mapping[int, int] = {}
    """By partition of the log, where it ended when the subscription was made: what follows from
    earlier records is not asked for."""


class DurableSubscription(NamedTuple):
    """A subscription whose updates wait for it."""

    id: str
    tenant: int
    """Who subscribed."""
    streams: Mapping[StreamRef, StreamKey]
    """The streams it is about; those of a Service Object come and go."""
    callback: str
    document: bytes
    """Its JSON document."""
    created_ms: int
    change: int
    """Another number after each change of it."""
    cursor: StoredCursor


class Cursors(Protocol):
    """The durable subscriptions of the platform. Every call may raise Unavailable."""

    def claim(self) -> bool:
        """Whether this process may deliver to durable subscriptions; one at a time may."""

    def changes(self) -> Mapping[str, int]:
        """Return the number of the last change of every durable subscription."""

    def subscriptions(self, ids: Iterable[str]) -> list[DurableSubscription]:
        """Return these, as they are now; those that are gone are missing."""

    def store(self, cursors: Mapping[str, StoredCursor]) -> None:
        """Note how far each of these has got; those that are gone are ignored."""


def write_cursor(cursor: StoredCursor) -> str:
    """Return a cursor as it is stored."""
    history = [[*stream, after] for stream, after in cursor.history.items()]
    stored = {"offsets": cursor.offsets, "history": history, "since": cursor.since}
    return orjson.dumps(stored, option=orjson.OPT_NON_STR_KEYS).decode()


def read_cursor(text: str) -> StoredCursor:
    """Return a stored cursor."""
    stored = orjson.loads(text)
    return StoredCursor(
        {int(partition): offset for partition, offset in stored["offsets"].items()},
        {StreamRef(name, stream): after for name, stream, after in stored["history"]},
        {int(partition): offset for partition, offset in stored["since"].items()},
    )
