"""What is kept in memory for clients that have not taken it yet is bounded over all of them.

Where it is too much, the tenant that holds the most loses its largest backlogs, until a
quarter is free again: whoever reads is not closed because others do not.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import Protocol

RELIEVED_TO = 0.75
"""It leaves room to spare, or every further update would look at every client again."""


class Holder(Protocol):
    """Somebody for whom something is kept."""

    @property
    def tenant(self) -> int:
        """Return the tenant to whose part it counts."""

    def kept_bytes(self) -> int:
        """Return how many bytes are kept for it now."""

    def drop(self) -> None:
        """Keep nothing for it any more."""

    def check_progress(self, now: float) -> None:
        """End it where it has taken nothing for too long. `now`: seconds of any clock."""


class Backlog:
    """Adds up what is kept, as of each holder's last `update`; in between it only becomes less."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes: dict[Holder, int] = {}
        self.total = 0
        """How many bytes are kept for all."""

    def update(self, holder: Holder) -> None:
        """Note what is kept for it now; where that is too much, the largest are dropped."""
        self._note(holder, holder.kept_bytes())
        if self.total > self._max_bytes:
            self._relieve()

    def remove(self, holder: Holder) -> None:
        """Forget a holder that is gone, with what was kept for it."""
        self._note(holder, 0)

    def check_progress(self, now: float) -> None:
        """Check all for whom something is kept, and note what that is now."""
        for holder in list(self._bytes):
            holder.check_progress(now)
            self._note(holder, holder.kept_bytes())

    def _note(self, holder: Holder, size: int) -> None:
        self.total += size - self._bytes.pop(holder, 0)
        if size:
            self._bytes[holder] = size

    def _relieve(self) -> None:
        for holder in list(self._bytes):
            self._note(holder, holder.kept_bytes())
        by_tenant: dict[int, list[tuple[int, int]]] = defaultdict(list)
        holders = list(self._bytes)
        for number, holder in enumerate(holders):
            by_tenant[holder.tenant].append((self._bytes[holder], number))
        heap = [(-sum(size for size, _ in held), tenant) for tenant, held in by_tenant.items()]
        heapq.heapify(heap)
        for held in by_tenant.values():
            held.sort()
        while self.total > self._max_bytes * RELIEVED_TO and heap:
            negative, tenant = heapq.heappop(heap)
            size, number = by_tenant[tenant].pop()
            holders[number].drop()
            self._note(holders[number], holders[number].kept_bytes())
            if by_tenant[tenant]:
                heapq.heappush(heap, (negative + size, tenant))
