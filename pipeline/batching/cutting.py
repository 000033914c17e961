"""Cuts a batch that is too much for one transaction into pieces that are less."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from pipeline.errors import BatchTooLarge, BatchTooSlow, Overflow, TreeTooLarge, TreeTooSlow
from pipeline.sharing.shares import Shares
from pipeline.work import Work

PIECES = 4
"""The number of pieces of a batch that took too long."""

ATTEMPTS = 3
"""Of a tree whose scripts take too long, before it is computed alone and cut by its verdicts: the
machine may have been busy."""

PREPARING_ATTEMPTS = 100
"""Of a tree whose programs are met for the first time; each gets further than the one before."""

MAX_REMEMBERED = 1000


class Piece(NamedTuple):
    """A piece of work."""

    work: Work
    alone: bool = False
    """It is one tree, to be evaluated one computation at a time."""


class Cutting:
    """Cuts the batches of one partition, and remembers how often a tree was tried."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._attempts: OrderedDict[int, tuple[int, int]] = OrderedDict()

    def smaller(self, work: Work, overflow: Overflow) -> list[Piece]:
        """The work in pieces of which each is less; the slow ones of a tenant are put off.

        Late work in no pieces at all waits for the next time.
        """
        count = len(work.updates)
        if isinstance(overflow, BatchTooLarge):
            return _pieces(work.cut(count // 2))
        if isinstance(overflow, BatchTooSlow):
            return _pieces(
                self._put_off(work) or work.cut(*range(0, count, max(1, count // PIECES)))
            )
        if not isinstance(overflow, TreeTooLarge):
            raise overflow
        if count > 1:
            place = next(
                number
                for number, each in enumerate(work.updates)
                if each.record.offset == overflow.offset
            )
            return _pieces(work.cut(place, place + 1))
        # Nobody's tree waits for the programs of those who subscribe to it.
        if isinstance(overflow, TreeTooSlow) and not overflow.foreign:
            later = self._put_off(work)
            if later:
                return _pieces(later)
            if self._tries_again(overflow):
                waits = overflow.prepared or work.late
                return self._another_time(work) if waits else [Piece(work)]
        return [Piece(work, alone=True)]

    def _another_time(self, work: Work) -> list[Piece]:
        """Nothing now, or the work put off: others come first meanwhile.

        To know the programs of a tree for the first time takes a while, for one.
        """
        return [] if work.late else _pieces([work.without(work.owners.values())])

    def _put_off(self, work: Work) -> list[Work]:
        """The work without what tenants over their share have in it; none if that is nothing."""
        over = set(work.owners.values()) & self._shares.over()
        return [work.without(over)] if over and not work.late else []

    def _tries_again(self, tree: TreeTooSlow) -> bool:
        preparing, other = self._attempts.get(tree.offset, (0, 0))
        preparing, other = (preparing + 1, other) if tree.prepared else (preparing, other + 1)
        self._attempts[tree.offset] = preparing, other
        if len(self._attempts) > MAX_REMEMBERED:
            self._attempts.popitem(last=False)
        return preparing < PREPARING_ATTEMPTS and other < ATTEMPTS


def _pieces(works: Iterable[Work]) -> list[Piece]:
    return [Piece(each) for each in works]
