"""What is kept in a partition of streams of other tenants: who reads them, and what has come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from servioticy.domain.model import LastUpdate, StreamRef, Timestamp
from servioticy.ports.put_off import TreeKey


class StoredInput(NamedTuple):
    """The last update of a stream of another tenant, as a Service Object that reads it knows it.

    Only where it is read other than as a trigger.
    """

    tenant: int
    """the reader's"""
    reader: str
    source: StreamRef
    timestamp: Timestamp
    document: bytes


class FedReader(NamedTuple):
    """A Service Object to which updates of another tenant's stream come in a partition."""

    reader: str
    tenant: int
    owner_partition: int
    """where it is computed; another one: it has moved, and what comes here is sent on"""


class Channel(NamedTuple):
    """What is known in a partition of the updates of another tenant's stream that come there."""

    marks: Mapping[int, tuple[int, int]]
    """from each partition: offset and part of the last one taken in"""
    readers: tuple[FedReader, ...]
    """in order of creation"""


class OutsideReader(NamedTuple):
    """A Service Object of another tenant that reads a stream, as is known where that is."""

    reader: str
    tenant: int
    source: StreamRef
    partition: int
    """where it is computed"""
    change: int
    """the number of the change by which it reads that"""
    is_open: bool
    """whether it may: nothing is sent to others"""


class Crossing(NamedTuple):
    """A record for other partitions that a transaction has made and that is not there for certain.

    It is sent once all that its tree has emitted is acknowledged.
    """

    offset: int
    """of the record in the log that it was made from"""
    tree: int
    """as of a TreeKey"""
    number: int
    """of several with this key"""
    partitions: tuple[int, ...]
    record: bytes
    """as it is to stand in the log"""

    @property
    def key(self) -> TreeKey:
        """Which tree it was made by."""
        return TreeKey(self.offset, self.tree)


class Borders(Protocol):
    """The part of the PartitionStore that knows who reads over borders, and what."""

    def channels(self, partition: int, streams: Iterable[StreamRef]) -> dict[StreamRef, Channel]:
        """Return who is fed in the partition with these streams of other tenants, and how far.

        Also those that have moved and are still fed here. A stream without readers or marks is
        left out.
        """

    def begun_behind(
        self, readers: Sequence[str], streams: Sequence[StreamRef], place: tuple[int, int]
    ) -> set[tuple[str, StreamRef]]:
        """Which of these readers have begun with which of these streams behind a place of theirs.

        What was made there and is sent on is none of it; not while more of that is awaited.
        """

    def awaiting(self, partition: int) -> dict[int, int]:
        """Which tenants await here what another partition sends on, and how much is held of each.

        What comes to them directly is held until that has ended.
        """

    def last_inputs(
        self, wanted: Iterable[tuple[str, StreamRef]]
    ) -> dict[tuple[str, StreamRef], LastUpdate]:
        """Return what these readers know as the last updates of these streams of other tenants.

        Of those of them that they keep and that have one.
        """

    def outside_readers(self, service_object: str) -> list[OutsideReader]:
        """Return who of other tenants reads its streams, in order of creation."""

    def reading(self, reader: str, provider: int, partition: int) -> list[OutsideReader]:
        """Return what a Service Object reads of a provider's that is computed in a partition."""

    def crossings(self, partition: int) -> list[Crossing]:
        """Return what is not certain to be where it was sent, in the order it was made."""
