"""How long an update of each tenant takes, as far as is known: what batches are cut by."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping

UNKNOWN_SECONDS = 0.0005
"""For a tenant never met: slow for most, so that a first batch is not a long one."""

SLOW_SECONDS = 0.01
"""An update whose scripts take longer holds up others that come behind it. The first one of a
tenant may: a process is started for its code."""

WEIGHT = 0.3
SCRIPTS_WEIGHT = 0.1
"""Less: where the machine is busy, scripts of everybody take long now and then."""

LONGEST = 5 * SLOW_SECONDS
"""Counted for one update of a tenant that was quick: one for which the machine had no processor
does not make it slow, a second one does, also where every third or fourth takes long."""

MAX_KNOWN = 10_000


class Pace:
    """Moving averages of the seconds an update takes, and its scripts of them, by tenant.

    For several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: OrderedDict[int, float] = OrderedDict()
        self._scripts: OrderedDict[int, float] = OrderedDict()

    def of(self, tenant: int) -> float:
        """Seconds that one update of this tenant is expected to take."""
        return self._seconds.get(tenant, UNKNOWN_SECONDS)

    def of_scripts(self, tenant: int) -> float:
        """Seconds that the scripts of one update of this tenant are expected to take."""
        return self._scripts.get(tenant, SLOW_SECONDS)

    def knows(self, tenant: int) -> bool:
        """Whether an update of this tenant has been computed before."""
        return tenant in self._scripts

    def is_slow(self, tenant: int) -> bool:
        """Whether an update of this tenant may hold up others, as far as is known."""
        return self.of_scripts(tenant) >= SLOW_SECONDS

    def learn(
        self,
        updates: Mapping[int, int],
        seconds: Mapping[int, float],
        scripts: Mapping[int, float],
    ) -> None:
        """Learn that so many updates of each tenant took so many seconds in all, and scripts."""
        with self._lock:
            for tenant, count in updates.items():
                each = seconds.get(tenant, 0.0) / count
                # What is slower than believed is believed at once.
                known = _average(self._seconds, tenant, each, WEIGHT)
                _note(self._seconds, tenant, max(each, known))
                each = scripts.get(tenant, 0.0) / count
                if not self.is_slow(tenant):
                    each = min(each, LONGEST)
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
