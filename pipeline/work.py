"""What the log gives, and what one transaction takes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from pipeline.steps import NewUpdate
from servioticy.ports.partition_store import PutOff


class Row(NamedTuple):
    """A record of the log as Kafka gave it."""

    offset: int
    value: bytes | None


class LoggedUpdate(NamedTuple):
    """An update that the log gave: what is to be computed, and the record that it came in."""

    new: NewUpdate
    record: PutOff


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
    def new_updates(self) -> list[NewUpdate]:
        """The updates, without the records that they came in."""
        return [each.new for each in self.updates]

    @property
    def owners(self) -> dict[int, int]:
        """The tenant of each update, by its offset."""
        return {each.record.offset: each.record.tenant for each in self.updates}

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
            until = self.next_offset if whole else self.updates[last].record.offset
            begun = pieces[-1].next_offset if pieces else 0
            later = [each for each in self.put_off if begun <= each.offset < until]
            forwarded = [each for each in self.forwarded if begun <= each.offset < until]
            pieces.append(Work(some, until, later, (), forwarded))
        return pieces

    def _late_piece(self, first: int, last: int) -> Work:
        """A piece of late work, with the records up to its last update that need no computing."""
        some = self.updates[first:last]
        after = self.updates[first - 1].record.offset if first else -1
        whole = last >= len(self.updates)
        until = self.late[-1].offset if whole else some[-1].record.offset
        late = [each for each in self.late if after < each.offset <= until]
        return Work(some, self.next_offset, (), late)

    def without(self, tenants: Iterable[int]) -> Work:
        """The same work with the updates of these tenants put off."""
        gone = frozenset(tenants)
        kept = [each for each in self.updates if each.record.tenant not in gone]
        later = [each.record for each in self.updates if each.record.tenant in gone]
        put_off = sorted((*self.put_off, *later), key=lambda each: each.offset)
        return Work(kept, self.next_offset, put_off, (), self.forwarded)
