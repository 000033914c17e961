"""What the log gives, and what one transaction takes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from servioticy.domain.model import SensorUpdate, StreamRef, Timestamp
from servioticy.ports.partition_store import PutOff


class Row(NamedTuple):
    """A record of the log as Kafka gave it."""

    offset: int
    value: bytes | None


class LoggedUpdate(NamedTuple):
    """An update that the log gave, to be computed now."""

    offset: int
    tenant: int
    origin: StreamRef
    timestamp: Timestamp
    document: bytes
    record: bytes
    """As it stands in the log."""

    @property
    def update(self) -> SensorUpdate:
        """The update, without where it came from."""
        return SensorUpdate(self.origin, self.timestamp, self.document)

    def as_put_off(self) -> PutOff:
        """The same as a record to compute later."""
        return PutOff(self.offset, self.tenant, self.origin.service_object, self.record)


class Forwarded(NamedTuple):
    """Notes that a record which another partition forwarded has come: once is enough."""

    offset: int
    """The offset of the record here."""
    source: int
    """The partition that it came from."""
    next_offset: int
    """Everything that partition forwarded from before this offset of its own has come."""


class Work(NamedTuple):
    """A stretch of the log; or records that had been put off, which move no progress."""

    updates: Sequence[LoggedUpdate]
    """The updates to compute, in order of the log."""
    next_offset: int
    """The batch ends before this offset."""
    put_off: Sequence[PutOff] = ()
    """The records of this stretch that are computed later."""
    late: Sequence[PutOff] = ()
    """The records that had been put off, if this work consists of such."""
    forwarded: Sequence[Forwarded] = ()
    """The forwarded records of this stretch, whatever became of them."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to store but progress."""
        return not (self.updates or self.put_off or self.late)

    @property
    def owners(self) -> dict[int, int]:
        """The tenant of each update, by its offset."""
        return {each.offset: each.tenant for each in self.updates}

    @property
    def sizes(self) -> dict[int, int]:
        """The bytes of the updates of each tenant."""
        found: Counter[int] = Counter()
        for each in self.updates:
            found[each.tenant] += len(each.document)
        return found

    def cut(self, *places: int) -> list[Work]:
        """The same work in pieces, cut before the updates with these numbers.

        Each piece ends where the next one begins.
        """
        edges = sorted({0, *places, len(self.updates)})
        pieces = []
        for first, last in pairwise(edges):
            some = self.updates[first:last]
            if self.late:
                pieces.append(self._late_piece(first, last))
                continue
            whole = last >= len(self.updates)
            until = self.next_offset if whole else self.updates[last].offset
            begun = pieces[-1].next_offset if pieces else 0
            later = [each for each in self.put_off if begun <= each.offset < until]
            forwarded = [each for each in self.forwarded if begun <= each.offset < until]
            pieces.append(Work(some, until, later, (), forwarded))
        return pieces

    def _late_piece(self, first: int, last: int) -> Work:
        """A piece of late work, with the records up to its last update that need no computing."""
        some = self.updates[first:last]
        begun = self.updates[first - 1].offset + 1 if first else self.late[0].offset
        whole = last >= len(self.updates)
        until = self.late[-1].offset if whole else some[-1].offset
        late = [each for each in self.late if begun <= each.offset <= until]
        return Work(some, self.next_offset, (), late)

    def without(self, tenants: Iterable[int]) -> Work:
        """The same work with the updates of these tenants put off."""
        gone = frozenset(tenants)
        kept = [each for each in self.updates if each.tenant not in gone]
        later = [each.as_put_off() for each in self.updates if each.tenant in gone]
        put_off = sorted((*self.put_off, *later), key=lambda each: each.offset)
        return Work(kept, self.next_offset, put_off, (), self.forwarded)
