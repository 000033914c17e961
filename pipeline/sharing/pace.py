"""How long an update of each tenant takes, as far as is known: what batches are cut by."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping

UNKNOWN_SECONDS = 0.0005
"""For a tenant never met: slow for most, so that a first batch is not a long one."""

SLOW_SECONDS = 0.01
"""An update whose scripts take more of the processor holds up others that come behind it. That of
a tenant not met yet may."""

WEIGHT = 0.3
SCRIPTS_WEIGHT = 0.1
"""Less: who is slow now and then is slow."""

MAX_KNOWN = 10_000


class Pace:
    """Moving averages by tenant: seconds an update takes, and processor seconds of its scripts.

    Who is slow is known by the latter: on a busy machine everything takes long. For several
    threads.
    """

    def __init__(self, is_ready: Callable[[int], bool] = lambda _tenant: True) -> None:
        """`is_ready` tells whether a tenant's scripts need not wait for the start of a process."""
        self._is_ready = is_ready
        self._lock = threading.Lock()
        self._seconds: OrderedDict[int, float] = OrderedDict()
        self._scripts: OrderedDict[int, float] = OrderedDict()

    def of(self, tenant: int) -> float:
        """Seconds that one update of this tenant is expected to take."""
        return self._seconds.get(tenant, UNKNOWN_SECONDS)

    def of_scripts(self, tenant: int) -> float:
        """Processor seconds that the scripts of one of its updates are expected to take."""
        return self._scripts.get(tenant, SLOW_SECONDS)

    def knows(self, tenant: int) -> bool:
        """Whether an update of this tenant has been computed before."""
        return tenant in self._scripts

    def is_slow(self, tenant: int) -> bool:
        """Whether an update of this tenant may hold up others, as far as is known.

        Whoever has no scripts of its own, but those who read its streams, needs no process.
        """
        seconds = self.of_scripts(tenant)
        return seconds >= SLOW_SECONDS or (seconds > 0 and not self._is_ready(tenant))

    def learn(
        self,
        updates: Mapping[int, int],
        seconds: Mapping[int, float],
        scripts: Mapping[int, float],
    ) -> None:
        """Learn how long so many updates of each tenant took in all, and what its scripts took."""
        with self._lock:
            for tenant, count in updates.items():
                each = seconds.get(tenant, 0.0) / count
                # What is slower than believed is believed at once.
                known = _average(self._seconds, tenant, each, WEIGHT)
                _note(self._seconds, tenant, max(each, known))
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
