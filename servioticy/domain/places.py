"""Places in the log that records name which another partition has sent: numbered anew.

So it is where a log is lost, or where a restored platform has another one: what is stored has
places below zero from then on, whatever offsets the log gives. What comes of the same place
twice is told by it as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import msgspec

from servioticy.domain.borders import partition_of
from servioticy.domain.records import (
    BeginRecord,
    BorderRecord,
    EndRecord,
    UnreadableRecord,
    read_record,
    write,
)

Crossed: TypeAlias = BorderRecord | BeginRecord | EndRecord
"""What crosses borders between tenants: it names the place where it was made."""


class Numbering(Protocol):
    """New offsets for old ones, by the partition that they are of."""

    def source(self, partition: int, offset: int) -> int:
        """Of a record that is stored, and from which something came."""

    def forwarded(self, partition: int, offset: int) -> int:
        """Of a record that was forwarded, and is stored or not."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """All that was stored of one partition is below zero."""

    partition: int
    beyond: int
    """The offset behind all that was stored."""

    def source(self, partition: int, offset: int) -> int:
        """Return the new offset."""
        return offset - self.beyond if partition == self.partition else offset

    forwarded = source


def renumbered(record: Crossed, numbering: Numbering) -> Crossed:
    """Return the record with other places."""
    channel, offset, _part = record.source
    source = record.source._replace(offset=numbering.source(partition_of(channel), offset))
    forwarded = record.forwarded
    if forwarded is not None:
        forwarded = forwarded[0], numbering.forwarded(*forwarded)
    return msgspec.structs.replace(record, source=source, forwarded=forwarded)


def rewritten(value: bytes, numbering: Numbering) -> bytes | None:
    """Return a record as it stands in the log with other places; None where it stays as it is."""
    try:
        record = read_record(value)
    except UnreadableRecord:
        return None
    if not isinstance(record, Crossed):
        return None
    found = renumbered(record, numbering)
    return None if found == record else write(found)
