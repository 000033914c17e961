"""What a feed gives: updates on their way, or why there are no more."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from delivery.endings import Ending
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.records import Position


class FeedEnded(Exception):
    """A feed gives nothing more, and why."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.value)
        self.ending = ending


class Delivery(NamedTuple):
    """An update on its way to a subscription."""

    stream: StreamRef
    update: LastUpdate
    position: Position | None
    """Where it stands in the topic; None where it comes from the history."""
    version: int = 0
    """Of the document that made it; 0 where it comes from the history, which is not asked."""
    trace: str = ""
    """The trace context of what it follows from; empty: none, or it comes from the history."""

    @property
    def id(self) -> str:
        """The same for the same update of the same stream, however often it is delivered."""
        name = "\0".join([*self.stream, str(self.update.timestamp)]).encode()
        return blake2b(name + b"\0" + self.update.document, digest_size=16).hexdigest()
