"""Batches come into the log no faster than it is worked on.

A partition of the log is first come, first served: behind what one tenant has put there at once
stand all others of the partition, and 145,000 updates in eight seconds had them wait for 1.4. So
a tenant's batches, however many there are, wait for the log now and then while others send to
the same partition: what goes on meanwhile is theirs. Not for long: where nothing is worked on, as
the pipeline starts again, all the log has room for is taken all the same. And who is alone there
waits for nothing.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from servioticy.ports.addresses import Address

AT_ONCE = 1_000
"""Updates of a tenant's batches that are appended before it is waited."""
MAX_SECONDS = 0.25
"""For the log, each time: more than such a part takes to be worked on."""
ACTIVE_SECONDS = 10.0
"""So long after an update of theirs others are there, as in the pipeline."""
MAX_TENANTS = 10_000

Wait = Callable[[Collection[Address]], object]
"""Returns when all that is in the partitions of these streams has been worked on, or is late."""


def no_wait(_addresses: Collection[Address]) -> None:
    """There is nothing to wait for."""


class _Senders(NamedTuple):
    """The two who have sent to a partition last, and when."""

    last: int
    at: float
    other: int | None = None
    other_at: float = 0.0

    def with_(self, tenant: int, now: float) -> _Senders:
        """Return them after somebody has sent."""
        if tenant == self.last:
            return self._replace(at=now)
        return _Senders(tenant, now, self.last, self.at)

    def others_at(self, tenant: int) -> float:
        """Return when others than the tenant have sent; far in the past if nobody has."""
        if tenant != self.last:
            return self.at
        return self.other_at if self.other is not None else float("-inf")


class Pacing:
    """Tells batches when to wait. Threads may share it."""

    def __init__(self, wait: Wait = no_wait, clock: Callable[[], float] = time.monotonic) -> None:
        self._wait = wait
        self._clock = clock
        self._lock = threading.Lock()
        self._ahead: OrderedDict[int, int] = OrderedDict()
        """How many each tenant has appended since it was waited, fewer than AT_ONCE."""
        self._senders: dict[int, _Senders] = {}
        """By partition; what comes in by other processes is not seen."""

    def saw(self, partitions: Iterable[int], tenant: int) -> None:
        """Note that a tenant has sent something to these partitions."""
        now = self._clock()
        with self._lock:
            for each in partitions:
                found = self._senders.get(each)
                self._senders[each] = found.with_(tenant, now) if found else _Senders(tenant, now)

    def appended(self, addresses: Collection[Address], number: int) -> None:
        """Note that so many updates of one tenant's streams were appended, and wait in between."""
        if not addresses:
            return
        tenant = next(iter(addresses)).tenant
        self.saw([each.partition for each in addresses], tenant)
        shared = [each for each in addresses if self._is_shared(each.partition, tenant)]
        if shared and self._is_time(tenant, number):
            self._wait(shared)

    def _is_shared(self, partition: int, tenant: int) -> bool:
        """Whether others send there, too."""
        at = self._senders[partition].others_at(tenant)
        return self._clock() - at <= ACTIVE_SECONDS

    def _is_time(self, tenant: int, number: int) -> bool:
        with self._lock:
            ahead = self._ahead.pop(tenant, 0) + number
            if ahead >= AT_ONCE:
                return True
            self._ahead[tenant] = ahead
            if len(self._ahead) > MAX_TENANTS:
                self._ahead.popitem(last=False)
            return False
