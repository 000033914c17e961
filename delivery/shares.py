"""How many may come, in all and of each tenant. Plain bookkeeping: knows no socket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable


class Full(Exception):
    """There is no place. `own`: the caller's own share is used up, others still find one."""

    def __init__(self, *, own: bool) -> None:
        super().__init__("no place")
        self.own = own


class Shares:
    """Places, a bounded number in all and a bounded number for each who takes them."""

    def __init__(self, in_all: int, each: int) -> None:
        self._in_all = in_all
        self._each = each
        self._taken: Counter[Hashable] = Counter()
        self._total = 0

    def take(self, who: Hashable) -> None:
        """Take a place; it has to be given back. Raises Full."""
        if self._taken[who] >= self._each:
            raise Full(own=True)
        if self._total >= self._in_all:
            raise Full(own=False)
        self._taken[who] += 1
        self._total += 1

    def give_back(self, who: Hashable) -> None:
        """Give back one place that was taken."""
        self._total -= 1
        self._taken[who] -= 1
        if not self._taken[who]:
            # Tenants come and go; an empty entry each would be a leak.
            del self._taken[who]

    def __len__(self) -> int:
        """How many places are taken."""
        return self._total
