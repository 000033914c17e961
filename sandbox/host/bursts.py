"""How much of the processor looking at each tenant's programs has taken lately."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from cachetools import LRUCache

BURST_SECONDS = 0.5
"""Of the processor, which may be taken at once: some thirty small documents, or a large one."""

PART = 0.05
"""Of each second, which comes back: one or two small documents."""

MAX_TENANTS = 10_000


class Bursts:
    """A bucket of seconds for each tenant. For several threads.

    It owes no more than a burst: whoever has rested for a while is quick again, however much it
    had taken of what nobody wanted.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._left: LRUCache[str, tuple[float, float]] = LRUCache(MAX_TENANTS)
        """Of a tenant the seconds that are left, and when."""

    def has(self, tenant: str) -> bool:
        """Tell whether something is left of the tenant's burst."""
        with self._lock:
            return self._balance(tenant) > 0

    def charge(self, tenant: str, seconds: float) -> None:
        """Note that looking at something of the tenant has taken so much."""
        with self._lock:
            left = max(-BURST_SECONDS, self._balance(tenant) - seconds)
            self._left[tenant] = left, self._clock()

    def _balance(self, tenant: str) -> float:
        left, at = self._left.get(tenant, (BURST_SECONDS, 0.0))
        return min(BURST_SECONDS, left + PART * (self._clock() - at))
