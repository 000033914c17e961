"""How long an update of each tenant takes, as far as is known: what batches are cut by."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping

UNKNOWN_SECONDS = 0.0005
"""For a tenant never met: slow for most, so that a first batch is not a long one."""

WEIGHT = 0.3
MAX_KNOWN = 10_000


class Pace:
    """Moving averages of the seconds an update takes, by tenant."""

    def __init__(self) -> None:
        self._seconds: OrderedDict[int, float] = OrderedDict()

    def of(self, tenant: int) -> float:
        """Seconds that one update of this tenant is expected to take."""
        return self._seconds.get(tenant, UNKNOWN_SECONDS)

    def learn(self, updates: Mapping[int, int], seconds: Mapping[int, float]) -> None:
        """Learn that so many updates of each tenant took so many seconds in all."""
        for tenant, count in updates.items():
            each = seconds.get(tenant, 0.0) / count
            known = self._seconds.get(tenant, each)
            # What is slower than believed is believed at once.
            self._seconds[tenant] = max(each, known + WEIGHT * (each - known))
            self._seconds.move_to_end(tenant)
        while len(self._seconds) > MAX_KNOWN:
            self._seconds.popitem(last=False)


def count_by_tenant(owners: Mapping[int, int]) -> Counter[int]:
    """How many updates each tenant has."""
    return Counter(owners.values())
