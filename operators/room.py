"""How much may wait to be answered, and who of the tenants may bring more of it."""

from __future__ import annotations

from collections import Counter

MOST_BYTES = 64 * 1024 * 1024
QUESTION_BYTES = 1024
"""What a question takes beside what is in it."""


class Room:
    """Room that is handed out by tenant.

    A tenant may have as much as is left to all others: so there is always some left, half of it
    while one tenant asks, a tenth while nine do (Choudhury and Hahne, Dynamic queue length
    thresholds, 1998).
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._taken = 0
        self._by_tenant: Counter[int] = Counter()

    def take(self, tenant: int, size: int) -> bool:
        """Take room, if there is any for this tenant."""
        if self._by_tenant[tenant] + size > self._most - self._taken:
            return False
        self._by_tenant[tenant] += size
        self._taken += size
        return True

    def give_back(self, tenant: int, size: int) -> None:
        """Leave room again."""
        self._taken -= size
        self._by_tenant[tenant] -= size
        if not self._by_tenant[tenant]:
            del self._by_tenant[tenant]

    @property
    def taken(self) -> int:
        """How many bytes are."""
        return self._taken
