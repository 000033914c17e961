"""Whose updates that have been put off are taken up next."""

from __future__ import annotations

from collections.abc import Collection

from pipeline.sharing.pace import Pace
from pipeline.sharing.shares import Shares

MAX_QUICK_TURNS = 8
"""Of different tenants, between two of those that may be anybody's."""


class Turns:
    """Some turns go to who has waited longest of those that have time: everybody has one.

    However many come meanwhile, that have more time. Between two of them each tenant whose updates
    are quick may have one, while it has time: it need not wait for a crowd that is slow. A piece
    of what is slow takes longer than those of several quick ones.
    """

    def __init__(self, shares: Shares, pace: Pace) -> None:
        self._shares = shares
        self._pace = pace
        self._number = 0
        self._quick: set[int] = set()
        """Who has had a turn as a quick one since the last that might have been anybody's."""
        self._latest: dict[int, int] = {}
        """of each who waits, the number of its last turn, or of the one at which it came"""

    def next(self, waiting: Collection[int]) -> int:
        """Return who of those that wait is next."""
        self._number += 1
        self._latest = {each: self._latest.get(each, self._number) for each in waiting}
        quick: list[int] = []
        if len(self._quick) < MAX_QUICK_TURNS:
            quick = [each for each in waiting if each not in self._quick and self._is_quick(each)]
        found = max(quick or waiting, key=self._key)
        self._quick = self._quick | {found} if quick else set()
        return found

    def took(self, tenant: int) -> None:
        """Note that this one had its turn."""
        self._latest[tenant] = self._number

    def _is_quick(self, tenant: int) -> bool:
        return not self._pace.is_slow(tenant) and self._shares.balance(tenant) >= 0

    def _key(self, tenant: int) -> tuple[float, int]:
        return min(0.0, self._shares.balance(tenant)), -self._latest[tenant]
