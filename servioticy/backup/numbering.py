"""Offsets of another log: what names a place in the one that is gone names one in the new one.

In a back-up offsets of the log count from stored progress: what is stored is below zero. In the
new log the first record that is not stored has the offset `begins`, by partition.

Progress may stand within a record, some of whose trees are stored (decision 0046): what came of
these is below zero, too; the record itself comes along in the log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from servioticy.domain.places import renumbered
from servioticy.domain.records import (
    AcquireRecord,
    BeginRecord,
    BorderRecord,
    EmittedRecord,
    EndRecord,
    ReleaseRecord,
    UnreadableRecord,
    UpdateRecord,
    read_emitted,
    read_record,
    write,
)
from servioticy.ports.cursors import StoredCursor

PLACES = (b'"forwarded"', b'"acquire"', b'"source"')
"""What a record of the log has in it that names a place in another partition."""

NOTHING = write(ReleaseRecord((), 0))
"""A record of the log that does nothing: of no Service Object at all."""


class LogNumbers:
    """Renumbers what names a place in the log."""

    def __init__(
        self,
        progress: Mapping[int, int],
        begins: Mapping[int, int],
        trees: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        """`progress`: by partition, the offset in the log that is gone of the first record that
        is not stored; `begins`: its offset in the new one. `trees`: those with smaller numbers
        that this record grows are stored.
        """
        self._trees = trees
        self._by = {each: begins[each] - progress[each] for each in progress}
        self._progress = progress
        self._begins = begins

    def since(self, offsets: Mapping[int, int]) -> dict[int, int]:
        """Return offsets that a cursor has; those of what is stored may be below zero."""
        return {each: at + self._by.get(each, 0) for each, at in offsets.items()}

    def emitted(self, partition: int, value: bytes) -> bytes:
        """Return a record of `emitted`, of which the place counts from stored progress."""
        read: EmittedRecord = read_emitted(value)
        if read.place is None:
            return value
        offset, *rest = read.place
        place = (offset + self._begins[partition], *rest)
        return write(msgspec.structs.replace(read, place=place))

    def has_passed(self, partition: int, offset: int) -> bool:
        """Tell whether a record of the log that is gone is stored."""
        return offset < self._progress.get(partition, 0)

    def offset(self, partition: int, offset: int) -> int:
        """Return where a record is that is not stored yet."""
        return offset + self._by.get(partition, 0)

    def forwarded(self, partition: int, offset: int) -> int:
        """Return where a record is that was forwarded: if it is stored, below zero."""
        if self.has_passed(partition, offset):
            return offset - self._progress[partition]
        return self.offset(partition, offset)

    def source(self, partition: int, offset: int) -> int:
        """Return the place, below zero, of what is stored and was sent over borders."""
        begun = self._trees.get(partition, 0) > 0
        return offset - self._progress.get(partition, 0) - begun

    def comes_again(self, partition: int, offset: int, tenant: int) -> bool:
        """Tell whether a tenant's tree is not stored, so that what it sent is sent anew."""
        stored = self._progress.get(partition, 0), self._trees.get(partition, 0)
        return (offset, tenant) >= stored


class Tail:
    """What is accepted and not stored of one partition, record by record as the new log has it."""

    def __init__(self, numbers: LogNumbers, forwarded: Mapping[int, int]) -> None:
        """`forwarded`: by the partition from which they came, the offset up to which records that
        were forwarded to this one are stored; in the log that is gone.
        """
        self._numbers = numbers
        self._forwarded = dict(forwarded)

    def record(self, value: bytes) -> bytes:
        """Return a record; one that has come before is nothing, and has its place all the same."""
        if not any(each in value for each in PLACES):
            return value
        try:
            read = read_record(value)
        except UnreadableRecord:  # it becomes a dead letter here, too
            return value
        if isinstance(read, UpdateRecord) and read.forwarded is not None:
            return self._update(read, *read.forwarded)
        if isinstance(read, AcquireRecord):
            return self._acquire(read)
        if isinstance(read, BorderRecord | BeginRecord | EndRecord):
            return self._crossed(read)
        return value

    def _crossed(self, read: BorderRecord | BeginRecord | EndRecord) -> bytes:
        """What is not stored where it was made is made again, and may be another then."""
        partition, offset, _part = read.source
        if self._numbers.comes_again(partition, offset, read.provider):
            return NOTHING
        if read.forwarded is not None and self._has_come(*read.forwarded):
            return NOTHING
        return write(renumbered(read, self._numbers))

    def _has_come(self, source: int, offset: int) -> bool:
        """Tell whether a forwarded record has come before, and note that it has now."""
        if offset < self._forwarded.get(source, 0):
            return True
        self._forwarded[source] = offset + 1
        return False

    def _update(self, read: UpdateRecord, source: int, offset: int) -> bytes:
        """Where its first partition has stored that it was forwarded, it comes once only.

        Else that partition forwards it once more, and this one is told by its place.
        """
        if self._has_come(source, offset):
            return NOTHING
        place = None
        if not self._numbers.has_passed(source, offset):
            place = source, self._numbers.offset(source, offset)
        return write(msgspec.structs.replace(read, forwarded=place))

    def _acquire(self, read: AcquireRecord) -> bytes:
        """Where the release is stored, the first record of the new log stands for it."""
        source = read.from_partition
        at = 0
        if not self._numbers.has_passed(source, read.release_offset):
            at = self._numbers.offset(source, read.release_offset)
        return write(msgspec.structs.replace(read, release_offset=at))


class TopicNumbers:
    """Where cursors stand in a topic of which some records are in a back-up.

    For one partition: first it is told where any cursor stands, then of each record in order.
    """

    def __init__(self, places: Iterable[int]) -> None:
        self._places = sorted(set(places))
        self._before = [0] * (len(self._places) + 1)
        """Of each place, how many records are there between the one before and it."""
        self._count = 0

    def note(self, offset: int) -> None:
        """Note that the record of this offset comes along."""
        self._before[bisect_left(self._places, offset + 1)] += 1
        self._count += 1

    def end(self) -> None:
        """All records have been noted."""
        for at in range(1, len(self._before)):
            self._before[at] += self._before[at - 1]

    def number(self, place: int) -> int:
        """Return how many records are before this place."""
        return self._before[bisect_left(self._places, place)]


def cursor(
    stored: StoredCursor,
    numbers: LogNumbers,
    topic: Mapping[int, TopicNumbers],
    begins: Mapping[int, int],
) -> StoredCursor:
    """Return a cursor as it stands in the new topic, whose first record comes to `begins`."""

    def there(offsets: Mapping[int, int]) -> dict[int, int]:
        return {each: begins[each] + topic[each].number(at) for each, at in offsets.items()}

    return stored._replace(
        offsets=there(stored.offsets),
        since=numbers.since(stored.since),
        before=there(stored.before),
    )
