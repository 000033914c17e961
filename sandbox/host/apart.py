"""What is not run together for some seconds: it has ended processes, and nobody is to blame.

Each step of a tree may do no harm by itself and all of them end their process, as a long chain of
slow programs does. No program is suspended for that: trees of that region are taken step by step
for a while, and all of them are computed; and calls that only end a process together come one by
one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import LRUCache

FAILURES = 3
WINDOW_SECONDS = 600.0
"""So often the same region fails within so long, without a culprit between."""

SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""How long, each time that it fails again when tried; the last one for all further ones."""

MAX_TENANTS = 10_000
MAX_REGIONS = 1_000
"""Of one tenant."""

TOGETHER = ""
"""In place of a region: calls of several."""


@dataclass(slots=True)
class _Record:
    failures: int = 0
    latest: float = 0.0
    level: int = 0
    until: float = 0.0


class Apart:
    """It remembers what has failed together, by tenant and region."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tenants: LRUCache[str, LRUCache[str, _Record]] = LRUCache(MAX_TENANTS)

    def failed(self, tenant: str, region: str) -> None:
        """Note that a process was ended by several steps, and as yet nobody is to blame."""
        regions = self._tenants.get(tenant)
        if regions is None:
            regions = self._tenants[tenant] = LRUCache(MAX_REGIONS)
        now = self._clock()
        record = regions.get(region)
        if record is None or now - record.latest > WINDOW_SECONDS:
            record = regions[region] = _Record()
        record.latest = now
        record.failures += 1
        if record.failures >= (1 if record.level else FAILURES):
            seconds = SECONDS[min(record.level, len(SECONDS) - 1)]
            record.failures, record.level = 0, record.level + 1
            record.until = now + seconds

    def explained(self, tenant: str) -> None:
        """Note that a program of the tenant is to blame: without it nothing may fail."""
        self._tenants.pop(tenant, None)

    def grew(self, tenant: str, region: str) -> None:
        """Note that it was run together, and nothing was ended: after a pause it is trusted again.

        Before one that says little: what fails at every other update fails.
        """
        regions = self._tenants.get(tenant)
        record = regions.get(region) if regions else None
        if regions and record and record.level:
            del regions[region]

    def holds(self, tenant: str, region: str) -> bool:
        """Tell whether it must not be run together now."""
        regions = self._tenants.get(tenant)
        record = regions.get(region) if regions else None
        return record is not None and record.until > self._clock()
