"""Batches come into the log no faster than it is worked on.

A partition of the log is first come, first served: behind what one tenant has put there at once
stand all others of the partition, and 145,000 updates in eight seconds had them wait for 1.4. So
a tenant's batches, however many there are, wait for the log now and then while others send to
the same partition: what goes on meanwhile is theirs. How many come at once follows from how long
those before took to be worked on, with all that was there: a slice of time, whatever the machine,
and however many connections a tenant has. Not for long: where nothing is worked on, as the
pipeline starts again, all the log has room for is taken all the same. And who is alone there waits
for nothing.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from servioticy.ports.addresses import Address

AT_ONCE = 1_000
"""Updates of a tenant's batches that are appended before it is waited, at most."""
LEAST = 50
"""So many at least: to wait takes some ten milliseconds, for however few."""
SLICE_SECONDS = 0.05
"""What is appended at once is to be worked on within so long: others stand behind it."""
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


class _Ahead(NamedTuple):
    """What a tenant has appended since it was waited, and how much that may become."""

    number: int = 0
    most: int = AT_ONCE


class Pacing:
    """Tells batches when to wait. Threads may share it."""

    def __init__(self, wait: Wait = no_wait, clock: Callable[[], float] = time.monotonic) -> None:
        self._wait = wait
        self._clock = clock
        self._lock = threading.Lock()
        self._ahead: OrderedDict[int, _Ahead] = OrderedDict()
        self._senders: dict[int, _Senders] = {}
        """By partition; what comes in by other processes is not seen."""

    def saw(self, partitions: Iterable[int], tenant: int) -> None:
        """Note that a tenant has sent something to these partitions."""
        now = self._clock()
        with self._lock:
            for each in partitions:
                found = self._senders.get(each)
                self._senders[each] = found.with_(tenant, now) if found else _Senders(tenant, now)

    def at_once(self, addresses: Collection[Address]) -> int:
        """Return how many updates of a tenant's batch to append to these before the next."""
        tenant = next((each.tenant for each in addresses), None)
        if tenant is None or not self._shared(addresses, tenant):
            return AT_ONCE
        with self._lock:
            found = self._ahead.get(tenant)
            return AT_ONCE if found is None else found.most

    def appended(self, addresses: Collection[Address], number: int) -> None:
        """Note that so many updates of one tenant's streams were appended, and wait in between."""
        if not addresses:
            return
        tenant = next(iter(addresses)).tenant
        self.saw([each.partition for each in addresses], tenant)
        shared = self._shared(addresses, tenant)
        number = self._due(tenant, number) if shared else 0
        if number:
            began = self._clock()
            self._wait(shared)
            self._took(tenant, number, self._clock() - began)

    def _shared(self, addresses: Collection[Address], tenant: int) -> list[Address]:
        """Those of them whose partitions others send to, too."""
        return [each for each in addresses if self._is_shared(each.partition, tenant)]

    def _is_shared(self, partition: int, tenant: int) -> bool:
        """Whether others send there, too."""
        found = self._senders.get(partition)
        return found is not None and self._clock() - found.others_at(tenant) <= ACTIVE_SECONDS

    def _due(self, tenant: int, number: int) -> int:
        """How many there are to wait for, with these; none where it is not time to."""
        with self._lock:
            before = self._ahead.pop(tenant, _Ahead())
            number += before.number
            is_time = number >= before.most
            self._ahead[tenant] = before._replace(number=0 if is_time else number)
            if len(self._ahead) > MAX_TENANTS:
                self._ahead.popitem(last=False)
            return number if is_time else 0

    def _took(self, tenant: int, number: int, seconds: float) -> None:
        """Note how long so many took: the next ones are to take a slice."""
        with self._lock:
            before = self._ahead.get(tenant)
            if before is not None:
                fit = number * SLICE_SECONDS / max(seconds, SLICE_SECONDS / 2)
                most = min(AT_ONCE, max(LEAST, round(fit)))
                self._ahead[tenant] = before._replace(most=most)
