"""What composites keep from one computation to the next, and the times at which they are woken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol


class KeptValue(NamedTuple):
    """What is kept under a key."""

    value: bytes
    due: int | None = None
    """At which time of the log the composite is woken for it, in ms since 1970; or that somebody
    outside is to be asked for it, where that is below zero."""


class StoredEntry(NamedTuple):
    """What a stream keeps under a key after a batch."""

    tenant: int
    stream_id: int
    key: bytes
    value: bytes | None
    """None: nothing."""
    due: int | None = None


class DueEntry(NamedTuple):
    """An entry whose time has come."""

    service_object: str
    stream: str
    key: bytes
    due: int


class EntryToAsk(NamedTuple):
    """An entry for which somebody outside is to be asked."""

    tenant: int
    service_object: str
    stream: str
    stream_id: int
    key: bytes
    value: bytes


class KeptEntries(Protocol):
    """The part of the PartitionStore that keeps entries."""

    def kept(self, wanted: Iterable[tuple[int, bytes]]) -> dict[tuple[int, bytes], KeptValue]:
        """What streams keep under these keys, by stream id and key."""

    def due(self, partition: int, now: int, most: int) -> Sequence[DueEntry]:
        """What is due, the oldest first; at most so many of each tenant.

        Of streams that are computed in the partition and are still there.
        """

    def to_ask(self, partition: int, most: int) -> Sequence[EntryToAsk]:
        """For what somebody is to be asked, what has waited longest first; so many of each tenant.

        Of streams that are computed in the partition and are still there.
        """

    def next_due(self, partition: int, after: int) -> int | None:
        """When the next entry is due behind this time, in ms since 1970; None: there is none.

        It may be of a stream that is gone: then nothing is, when that time has come.
        """
