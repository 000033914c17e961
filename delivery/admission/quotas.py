"""How many may come, in all and of each owner. A quota counts, and knows no connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any


class QuotaExceeded(Exception):
    """No place is left. `own`: the owner has used its part up, others still find a place."""

    def __init__(self, *, own: bool) -> None:
        super().__init__("there is no place left")
        self.own = own


class Quota:
    """A quota has a bounded number of places in all, and a bounded number for each owner."""

    def __init__(self, in_all: int, each: int) -> None:
        self._in_all = in_all
        self._each = each
        self.others: Mapping[Any, int] = {}
        """Owners that have another number of places."""
        self._in_use: Counter[Hashable] = Counter()
        self._total = 0

    def acquire(self, owner: Hashable) -> None:
        """Take one place for the owner, to be released later. Raises QuotaExceeded."""
        if self._in_use[owner] >= self.others.get(owner, self._each):
            raise QuotaExceeded(own=True)
        if self._total >= self._in_all:
            raise QuotaExceeded(own=False)
        self._in_use[owner] += 1
        self._total += 1

    def release(self, owner: Hashable) -> None:
        """Give one of the owner's places back."""
        self._total -= 1
        self._in_use[owner] -= 1
        if not self._in_use[owner]:
            # Tenants come and go; an empty entry each would be a leak.
            del self._in_use[owner]

    def __len__(self) -> int:
        """Return how many places are in use."""
        return self._total
