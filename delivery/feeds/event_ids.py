"""The ids of events: places from which a client goes on without a gap.

An update of the topic is `partition.offset.timestamp`, one of the history `stream.timestamp`,
where the stream is a short digest of its name.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

from delivery.feeds.deliveries import Delivery
from servioticy.domain.model import StreamRef, Timestamp
from servioticy.domain.records import Position

_ID = re.compile(
    r"(?:(?P<partition>[0-9]{1,6})\.(?P<offset>-1|[0-9]{1,18})|(?P<stream>s[0-9a-f]{12}))"
    r"\.(?P<timestamp>-?[0-9]{1,19})"
)
_MOST = 2**63


class EventId(NamedTuple):
    """Where a client stands: it has got the update there, and all before it."""

    position: Position | None
    """In the topic; None where the history gave the update."""
    stream: str | None
    """The digest of the stream, where the history gave it."""
    timestamp: Timestamp

    def __str__(self) -> str:
        """Return it as it is sent."""
        if self.position is None:
            return f"{self.stream}.{self.timestamp}"
        return f"{self.position.partition}.{self.position.offset}.{self.timestamp}"

    def names(self, delivery: Delivery) -> bool:
        """Return whether this is the id of that delivery."""
        return self == event_id(delivery)


def event_id(delivery: Delivery) -> EventId:
    """Return the id of an update on its way to a client."""
    stream = None if delivery.position is not None else digest(delivery.stream)
    return EventId(delivery.position, stream, delivery.update.timestamp)


def read_event_id(text: str) -> EventId | None:
    """Return what an id says, or None where it is none of ours."""
    found = _ID.fullmatch(text)
    if found is None:
        return None
    timestamp = int(found["timestamp"])
    if not -_MOST <= timestamp < _MOST:
        return None
    if found["stream"] is not None:
        return EventId(None, found["stream"], timestamp)
    return EventId(Position(int(found["partition"]), int(found["offset"])), None, timestamp)


def digest(stream: StreamRef) -> str:
    """Return a stream as it stands in an id."""
    return "s" + blake2b("\0".join(stream).encode(), digest_size=6).hexdigest()
