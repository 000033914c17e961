"""What one transaction takes of the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from pipeline.journal import Made
from servioticy.ports import PutOff


class Taken(NamedTuple):
    """An update as the log gave it: what to compute, and the record that it came in."""

    made: Made
    record: PutOff


class Forwarded(NamedTuple):
    """That a record which another partition forwarded has been taken: once is enough."""

    offset: int
    """of the record here"""
    source: int
    """the partition it came from"""
    next_offset: int
    """what it forwarded before this offset of its own has been taken"""


class Work(NamedTuple):
    """A stretch of the log; or records that had been put off, which move no progress."""

    taken: Sequence[Taken]
    """the updates to compute, in order of the log"""
    next_offset: int
    """the batch ends before it"""
    put_off: Sequence[PutOff] = ()
    """records of this stretch that are computed later"""
    late: Sequence[PutOff] = ()
    """what had been put off, if that is what this work is"""
    forwarded: Sequence[Forwarded] = ()
    """of this stretch, whatever became of them"""

    @property
    def is_empty(self) -> bool:
        """Whether it has nothing to store but progress."""
        return not (self.taken or self.put_off or self.late)

    @property
    def updates(self) -> list[Made]:
        """The updates alone."""
        return [each.made for each in self.taken]

    @property
    def owners(self) -> dict[int, int]:
        """By the offset of each update, whose it is."""
        return {each.record.offset: each.record.tenant for each in self.taken}

    def cut(self, *places: int) -> list[Work]:
        """In pieces, cut before these places; each ends where the next one begins."""
        edges = sorted({0, *places, len(self.taken)})
        pieces = []
        for first, last in pairwise(edges):
            some = self.taken[first:last]
            if self.late:
                pieces.append(self._late_piece(first, last))
                continue
            whole = last >= len(self.taken)
            until = self.next_offset if whole else self.taken[last].record.offset
            begun = pieces[-1].next_offset if pieces else 0
            later = [each for each in self.put_off if begun <= each.offset < until]
            forwarded = [each for each in self.forwarded if begun <= each.offset < until]
            pieces.append(Work(some, until, later, (), forwarded))
        return pieces

    def _late_piece(self, first: int, last: int) -> Work:
        """With what needs no computing up to its last update."""
        some = self.taken[first:last]
        begun = self.taken[first - 1].record.offset + 1 if first else self.late[0].offset
        whole = last >= len(self.taken)
        until = self.late[-1].offset if whole else some[-1].record.offset
        late = [each for each in self.late if begun <= each.offset <= until]
        return Work(some, self.next_offset, (), late)

    def without(self, tenants: Iterable[int]) -> Work:
        """The same, with the updates of these tenants put off."""
        gone = frozenset(tenants)
        kept = [each for each in self.taken if each.record.tenant not in gone]
        later = [each.record for each in self.taken if each.record.tenant in gone]
        put_off = sorted((*self.put_off, *later), key=lambda each: each.offset)
        return Work(kept, self.next_offset, put_off, (), self.forwarded)
