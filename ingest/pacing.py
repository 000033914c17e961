"""Batches come into the log no faster than it is worked on.

A partition of the log is first come, first served: behind what one tenant has put there at once
stand all others of the partition, and 170,000 updates in five seconds made them wait for two. So
a tenant's batches, however many there are, wait for the log now and then: what goes on meanwhile
is others'. Not for long: where nothing is worked on, as the pipeline starts again, all the log
has room for is taken all the same.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection

from servioticy.ports.addresses import Address

AT_ONCE = 1_000
"""Updates of a tenant's batches that are appended before it is waited."""
MAX_SECONDS = 0.25
"""For the log, each time: more than such a part takes to be worked on."""
MAX_TENANTS = 10_000

Wait = Callable[[Collection[Address]], object]
"""Returns when all that is in the partitions of these streams has been worked on, or is late."""


def no_wait(_addresses: Collection[Address]) -> None:
    """There is nothing to wait for."""


class Pacing:
    """Tells batches when to wait. Threads may share it."""

    def __init__(self, wait: Wait = no_wait) -> None:
        self._wait = wait
        self._lock = threading.Lock()
        self._ahead: OrderedDict[int, int] = OrderedDict()
        """How many each tenant has appended since it was waited, fewer than AT_ONCE."""

    def appended(self, addresses: Collection[Address], number: int) -> None:
        """Note that so many updates of one tenant's streams were appended, and wait in between."""
        if addresses and self._is_time(next(iter(addresses)).tenant, number):
            self._wait(addresses)

    def _is_time(self, tenant: int, number: int) -> bool:
        with self._lock:
            ahead = self._ahead.pop(tenant, 0) + number
            if ahead >= AT_ONCE:
                return True
            self._ahead[tenant] = ahead
            if len(self._ahead) > MAX_TENANTS:
                self._ahead.popitem(last=False)
            return False
