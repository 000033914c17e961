"""How many bytes of updates a tenant may send a second, for what one API process sees."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

BURST_SECONDS = 1.0
"""So many seconds' worth may come at once: others in the partition wait for what came before."""

MAX_KNOWN = 10_000


class Inflow:
    """A bucket of bytes for each tenant; the longest unused, which are full, are forgotten."""

    def __init__(
        self, bytes_per_second: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[int, tuple[float, float]] = OrderedDict()

    def take(self, tenant: int, size: int) -> bool:
        """Tell whether so many bytes may come now; if so they are counted.

        An update larger than a full bucket may come when it is full.
        """
        now, most = self._clock(), self._rate * BURST_SECONDS
        with self._lock:
            left, at = self._buckets.get(tenant, (most, now))
            left = min(most, left + self._rate * (now - at))
            taken = left >= min(size, most)
            self._buckets[tenant] = (left - size if taken else left, now)
            self._buckets.move_to_end(tenant)
            if len(self._buckets) > MAX_KNOWN:
                self._buckets.popitem(last=False)
        return taken
