"""What history has of streams, as the pipeline asks for it while it computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from servioticy.domain.model import Timestamp

MAX_BYTES = 1024 * 1024
"""Of documents, in one answer that may have several."""

MAX_TOGETHER = 4 * 1024 * 1024
"""Of documents, in all answers: they are read where everybody's updates wait."""


class WantedPast(NamedTuple):
    """The updates of some streams from one timestamp until another."""

    streams: Sequence[int]
    """Each once."""
    begin: Timestamp
    until: Timestamp
    most: int
    is_newest: bool = False
    """Of each stream the newest alone."""

    @property
    def is_single(self) -> bool:
        """Whether it is one update at most."""
        is_one = len(self.streams) == 1 and self.begin == self.until
        return is_one and not self.is_newest


class StoredPast(NamedTuple):
    """One of them."""

    stream_id: int
    timestamp: Timestamp
    document: bytes


class ToldPast(NamedTuple):
    """What is stored of all that was asked for together."""

    answers: Sequence[Sequence[StoredPast] | None]
    is_all: bool = True
    """Whether none of them is missing because of the others."""


class PastUpdates(Protocol):
    """The part of the PartitionStore that tells what was stored."""

    def past(self, wanted: Sequence[WantedPast], room: int = MAX_TOGETHER) -> ToldPast:
        """Of each of these what is stored of it, by timestamp, and then by place in the log.

        None where there is more than is asked for, or than MAX_BYTES of several; and from where on
        all together has no `room`, in bytes of documents: single updates come first, and then the
        others in order. What is more than MAX_BYTES takes so much of it, as it may have been read.
        """
