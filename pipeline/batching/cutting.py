"""Cuts a batch that is too much for one transaction into pieces that are less."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from pipeline.errors import BatchTooLarge, BatchTooSlow, Overflow, TreeTooLarge, TreeTooSlow
from pipeline.sharing.shares import Shares
from pipeline.sharing.spending import Spending
from pipeline.work import Work
from servioticy.ports.put_off import TreeKey

Key = TypeVar("Key")
T = TypeVar("T")

PIECES = 4
"""The number of pieces of a batch that took too long."""

ATTEMPTS = 2
"""Of a tree whose scripts take too long, before it is computed alone and cut by its verdicts: the
machine may have been busy."""

SLOW_TENANT_SECONDS = 10.0
"""So long after such a tree, others of the tenant are computed alone at once: with several of them
one after the other it is not the machine."""

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

    def __init__(self, shares: Shares, clock: Callable[[], float]) -> None:
        self._shares = shares
        self._clock = clock
        self._attempts: OrderedDict[TreeKey, tuple[int, int]] = OrderedDict()
        self._slow_until: OrderedDict[int, float] = OrderedDict()

    def is_slow(self, work: Work) -> bool:
        """Whether it is a tree of a tenant whose trees have just been too slow."""
        if len(work.updates) != 1 or not self._slow_until:
            return False
        return self._clock() < self._slow_until.get(work.updates[0].tenant, 0.0)

    def note(self, work: Work, spending: Spending) -> None:
        """Remember whose tree has been cut because its scripts took too long."""
        if len(work.updates) != 1:
            return
        tenant = work.updates[0].tenant
        if spending.seconds_left <= 0:
            _remember(self._slow_until, tenant, self._clock() + SLOW_TENANT_SECONDS)

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
                number for number, each in enumerate(work.updates) if each.key == overflow.key
            )
            return _pieces(work.cut(place, place + 1))
        if isinstance(overflow, TreeTooSlow):
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
        preparing, other = self._attempts.get(tree.key, (0, 0))
        preparing, other = (preparing + 1, other) if tree.prepared else (preparing, other + 1)
        _remember(self._attempts, tree.key, (preparing, other))
        return preparing < PREPARING_ATTEMPTS and other < ATTEMPTS


def _remember(memory: OrderedDict[Key, T], key: Key, value: T) -> None:
    """Note it; where there are too many, what was noted first is forgotten."""
    memory[key] = value
    if len(memory) > MAX_REMEMBERED:
        memory.popitem(last=False)


def _pieces(works: Iterable[Work]) -> list[Piece]:
    return [Piece(each) for each in works]
