"""What history has of streams, as the pipeline asks for it while it computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from servioticy.domain.model import Timestamp

MAX_BYTES = 1024 * 1024
"""Of documents, in one answer."""


class WantedPast(NamedTuple):
    """The updates of some streams from one timestamp until another."""

    streams: Sequence[int]
    """Each once."""
    begin: Timestamp
    until: Timestamp
    most: int
    is_newest: bool = False
    """Of each stream the newest alone."""


class StoredPast(NamedTuple):
    """One of them."""

    stream_id: int
    timestamp: Timestamp
    document: bytes


class PastUpdates(Protocol):
    """The part of the PartitionStore that tells what was stored."""

    def past(self, wanted: Sequence[WantedPast]) -> Sequence[Sequence[StoredPast] | None]:
        """Of each of these what is stored of it, by timestamp, and then by place in the log.

        None where there is more than is asked for, or than MAX_BYTES.
        """
