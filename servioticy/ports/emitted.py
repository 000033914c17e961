"""The topic of emitted updates, read from any place in it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from servioticy.domain.model import StreamRef
from servioticy.domain.records import ConsumedRecord, EmittedRecord, Position, read_emitted


class Emitted(Protocol):
    """What has just come from the topic: its stream is known, the rest is read when needed."""

    @property
    def stream(self) -> StreamRef:
        """Return the stream that it is an update of."""

    @property
    def position(self) -> Position:
        """Return where it stands in the topic."""

    @property
    def size(self) -> int:
        """Return about how many bytes it takes."""

    def read(self) -> EmittedRecord:
        """Read it. Raises UnreadableRecord."""


class UnreadRecord(NamedTuple):
    """A message of the topic as it came: most are of streams that nobody here watches."""

    stream: StreamRef
    value: bytes
    position: Position

    @property
    def size(self) -> int:
        """Return how many bytes it takes."""
        return len(self.value)

    def read(self) -> EmittedRecord:
        """Read it. Raises UnreadableRecord."""
        return read_emitted(self.value)


class EmittedPage(NamedTuple):
    """A stretch of one partition."""

    records: list[ConsumedRecord]
    next_offset: int
    """Where to read on: what cannot be read is passed over."""


class EmittedPages(Protocol):
    """Reads stretches of the topic. Every call may raise Unavailable."""

    def read(self, partition: int, offset: int, end: int) -> EmittedPage:
        """Read on from an offset, as much as is read at once, up to before `end`.

        Where the topic does not reach back so far any more, it begins where the topic does.
        """

    def offsets_at(self, time_ms: int) -> dict[int, int]:
        """Return by partition the first offset whose record was emitted then or later.

        Partitions are missing of which nothing was: whatever comes there, comes after this.
        """

    def begins_at(self, partition: int) -> int:
        """Return the first offset to which the topic still reaches back there."""
