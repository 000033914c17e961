"""What is kept in memory for sockets that have not taken it yet: bounded in all.

Where there is too much, the tenant that holds the most loses its heaviest ones, until a
quarter is free again: whoever reads is not closed because others do not.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import Protocol

RELIEVED_TO = 0.75
"""With room to spare, or every further update would look at every socket again."""


class Weighed(Protocol):
    """A watcher, for which something may be kept."""

    @property
    def tenant(self) -> int:
        """Whose share it counts to."""

    def weight(self) -> int:
        """Bytes kept for it now."""

    def give_up(self) -> None:
        """Keep nothing for it any more."""

    def look_after(self, now: float) -> None:
        """Close it where it has stood still for too long. `now`: seconds of any clock."""


class Backlog:
    """The bytes that wait for each socket, as they were last told; since then they became less."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._weights: dict[Weighed, int] = {}
        self.total = 0

    def weigh(self, watcher: Weighed) -> None:
        """Note what is kept for it now; may make it, or heavier ones, give up."""
        self._note(watcher, watcher.weight())
        if self.total > self._max_bytes:
            self._relieve()

    def remove(self, watcher: Weighed) -> None:
        """It is gone, and what was kept for it, too."""
        self._note(watcher, 0)

    def look_after(self, now: float) -> None:
        """Look after all for which something is kept, and weigh them."""
        for watcher in list(self._weights):
            watcher.look_after(now)
            self._note(watcher, watcher.weight())

    def _note(self, watcher: Weighed, weight: int) -> None:
        self.total += weight - self._weights.pop(watcher, 0)
        if weight:
            self._weights[watcher] = weight

    def _relieve(self) -> None:
        for watcher in list(self._weights):
            self._note(watcher, watcher.weight())
        shares: dict[int, list[tuple[int, int]]] = defaultdict(list)
        by_number = list(self._weights)
        for number, watcher in enumerate(by_number):
            shares[watcher.tenant].append((self._weights[watcher], number))
        heap = [(-sum(weight for weight, _ in share), tenant) for tenant, share in shares.items()]
        heapq.heapify(heap)
        for share in shares.values():
            share.sort()
        while self.total > self._max_bytes * RELIEVED_TO and heap:
            negative, tenant = heapq.heappop(heap)
            weight, number = shares[tenant].pop()
            by_number[number].give_up()
            self._note(by_number[number], by_number[number].weight())
            if shares[tenant]:
                heapq.heappush(heap, (negative + weight, tenant))
