"""How long an update of each tenant takes, as far as is known: what batches are cut by."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping

UNKNOWN_SECONDS = 0.0005
"""For a tenant never met: slow for most, so that a first batch is not a long one."""

SLOW_SECONDS = 0.01
"""An update whose scripts take longer holds up others that come behind it."""

NEW_SECONDS = 0.02
"""So long may the first update of a tenant take: a process is started for its code."""

WEIGHT = 0.3
SCRIPTS_WEIGHT = 0.1
"""Less: where the machine is busy, scripts of everybody take long now and then."""

MAX_KNOWN = 10_000


class Pace:
    """Moving averages of the seconds an update takes, and its scripts of them, by tenant."""

    def __init__(self) -> None:
        self._seconds: OrderedDict[int, float] = OrderedDict()
        self._scripts: OrderedDict[int, float] = OrderedDict()

    def of(self, tenant: int) -> float:
        """Seconds that one update of this tenant is expected to take."""
        return self._seconds.get(tenant, UNKNOWN_SECONDS)

    def slowness(self, tenant: int, *, is_first: bool) -> float:
        """Seconds that an update of this tenant holds up others; 0 where it is quick.

        Of a tenant never met, the `first` one of a batch may.
        """
        seconds = self._scripts.get(tenant, NEW_SECONDS if is_first else 0.0)
        return seconds if seconds >= SLOW_SECONDS else 0.0

    def learn(
        self,
        updates: Mapping[int, int],
        seconds: Mapping[int, float],
        scripts: Mapping[int, float],
    ) -> None:
        """Learn that so many updates of each tenant took so many seconds in all, and scripts."""
        for tenant, count in updates.items():
            each = seconds.get(tenant, 0.0) / count
            # What is slower than believed is believed at once.
            _note(self._seconds, tenant, max(each, _average(self._seconds, tenant, each, WEIGHT)))
            each = scripts.get(tenant, 0.0) / count
            _note(self._scripts, tenant, _average(self._scripts, tenant, each, SCRIPTS_WEIGHT))


def _average(known: Mapping[int, float], tenant: int, seconds: float, weight: float) -> float:
    before = known.get(tenant, seconds)
    return before + weight * (seconds - before)


def _note(known: OrderedDict[int, float], tenant: int, seconds: float) -> None:
    known[tenant] = seconds
    known.move_to_end(tenant)
    if len(known) > MAX_KNOWN:
        known.popitem(last=False)


def count_by_tenant(owners: Mapping[int, int]) -> Counter[int]:
    """How many updates each tenant has."""
    return Counter(owners.values())
