"""The ids of events: places from which a client goes on without a gap.

An update of the topic is `partition.offset.timestamp.log`, one of the history
`stream.timestamp`, where log and stream are short digests: of the topic, which is another one
where a platform was restored from a back-up, and of the stream's name.
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
    r"\.(?P<timestamp>-?[0-9]{1,19})(?(partition)(?:\.(?P<log>[0-9a-f]{8}))?)"
)
_MOST = 2**63


class EventId(NamedTuple):
    """Where a client stands: it has got the update there, and all before it."""

    position: Position | None
    """In the topic; None where the history gave the update."""
    stream: str | None
    """The digest of the stream, where the history gave it."""
    timestamp: Timestamp
    log: str = ""
    """In which topic the position is: empty where that was not said."""

    def __str__(self) -> str:
        """Return it as it is sent."""
        if self.position is None:
            return f"{self.stream}.{self.timestamp}"
        log = f".{self.log}" if self.log else ""
        return f"{self.position.partition}.{self.position.offset}.{self.timestamp}{log}"

    def is_of(self, log: str) -> bool:
        """Tell whether its place is one in this topic: else it says only when it was."""
        return self.position is None or self.log == log


def event_id(delivery: Delivery, log: str) -> EventId:
    """Return the id of an update of this topic, or of the history, on its way to a client."""
    if delivery.position is None:
        return EventId(None, digest(delivery.stream), delivery.update.timestamp)
    return EventId(delivery.position, None, delivery.update.timestamp, log)


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
    position = Position(int(found["partition"]), int(found["offset"]))
    return EventId(position, None, timestamp, found["log"] or "")


def log_digest(topic_id: str) -> str:
    """Return a topic as it stands in an id."""
    return blake2b(topic_id.encode(), digest_size=4).hexdigest()


def digest(stream: StreamRef) -> str:
    """Return a stream as it stands in an id."""
    return "s" + blake2b("\0".join(stream).encode(), digest_size=6).hexdigest()
