"""Much comes into the log no faster than it is worked on: batches, and large updates.

A partition of the log is first come, first served: behind what one tenant has put there at once
stand all others of the partition, and 145,000 updates in eight seconds had them wait for 1.4, as
had eighteen of 1 MiB. So while others send to the same partition, a tenant's parts come one at a
time, over however many connections, and the next waits until those before it are worked on: what
goes on meanwhile is others'. How much comes at once follows from how long that took, with all
that was there: a slice of time, whatever the machine. It is not waited for long: where nothing is
worked on, as the pipeline starts again, all the log has room for is taken all the same. And who
is alone there waits for nothing, nor for himself.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ingest.progress import Awaited, Ended, How
from servioticy.domain.contested import CONTESTED_SECONDS
from servioticy.errors import Unavailable
from servioticy.ports.addresses import Address

AT_ONCE = 1_000
"""What may be appended before it is waited, at most: one for each update, one for each KiB."""
LEAST = 50
"""So much at least: to wait takes some ten milliseconds, for however little."""
MAX_SECONDS = 0.25
"""For the log, each time: more than such a part takes to be worked on."""
TURN_SECONDS = 30.0
"""For its tenant's turn. As many wait for it as there are threads that may: a few."""
ACTIVE_SECONDS = 10.0
"""So long after an update of theirs others are there, as in the pipeline."""
MAX_TENANTS = 10_000

Wait = Callable[[Collection[Awaited]], Sequence[Ended]]
"""Returns when all of this has been worked on, or is late: what came of it."""


def no_wait(_awaited: Collection[Awaited]) -> Sequence[Ended]:
    """There is nothing to wait for."""
    return ()


def never(_partition: int) -> float:
    """Nobody has sent there."""
    return float("-inf")


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


class _Tenant:
    """Whose turn it is of one tenant's parts, and what the last of them were."""

    __slots__ = ("ahead", "most", "places", "since", "where")

    def __init__(self) -> None:
        self.places: deque[threading.Event] = deque()
        """Of those who wait for their turn; the first has it."""
        self.ahead = 0
        """what was appended since it was waited"""
        self.where: set[Awaited] = set()
        """and what has to be worked on for that"""
        self.since = 0.0
        """when the last of it was appended"""
        self.most = AT_ONCE
        """what `ahead` may become"""


class Turn:
    """Somebody's turn to append a part."""

    __slots__ = ("appended", "most")

    def __init__(self, most: int = AT_ONCE) -> None:
        self.most = most
        """what the part may weigh, and the update that reaches it"""
        self.appended = 0
        """what it did weigh: whoever has the turn says so"""


class Pacing:
    """Gives turns to those who send much. Threads may share it."""

    def __init__(
        self,
        wait: Wait = no_wait,
        clock: Callable[[], float] = time.monotonic,
        elsewhere: Callable[[int], float] = never,
    ) -> None:
        """Another process has sent to a partition at `elsewhere(partition)`, by the same clock."""
        self._wait = wait
        self._clock = clock
        self._elsewhere = elsewhere
        self._lock = threading.Lock()
        self._tenants: OrderedDict[int, _Tenant] = OrderedDict()
        self._senders: dict[int, _Senders] = {}
        """By partition, of what comes in by this process."""

    def saw(self, partitions: Iterable[int], tenant: int) -> None:
        """Note that a tenant has sent something to these partitions."""
        now = self._clock()
        with self._lock:
            for each in partitions:
                found = self._senders.get(each)
                self._senders[each] = found.with_(tenant, now) if found else _Senders(tenant, now)

    @contextmanager
    def turn(self, addresses: Collection[Address]) -> Iterator[Turn]:
        """Wait for one's turn to append a part to streams of one tenant, and have it.

        However it ends, by an error too, the next one has the turn. Raises Unavailable where it
        does not come.
        """
        tenant = next((each.tenant for each in addresses), None)
        shared = set() if tenant is None else self._shared(addresses, tenant)
        if tenant is None or not shared:
            yield Turn()
            return
        place = threading.Event()
        own = self._queue(tenant, place)
        try:
            if not place.wait(TURN_SECONDS):
                raise Unavailable("too much of this tenant waits for the log")
            self._wait_for_those_before(own)
            turn = Turn(max(1, own.most - own.ahead))
            yield turn
            own.ahead += turn.appended
            own.where |= shared
            own.since = self._clock()
        finally:
            self._hand_on(own, place)

    def _shared(self, addresses: Collection[Address], tenant: int) -> set[Awaited]:
        """Note that the tenant sends there; return where others do, too."""
        partitions = {each.partition for each in addresses}
        self.saw(partitions, tenant)
        return {Awaited(each, tenant) for each in partitions if self._is_shared(each, tenant)}

    def _is_shared(self, partition: int, tenant: int) -> bool:
        """Whether others send there, too."""
        found = self._senders.get(partition)
        here = found.others_at(tenant) if found is not None else float("-inf")
        return self._clock() - max(here, self._elsewhere(partition)) <= ACTIVE_SECONDS

    def _queue(self, tenant: int, place: threading.Event) -> _Tenant:
        with self._lock:
            own = self._tenants.pop(tenant, None) or _Tenant()
            self._tenants[tenant] = own
            own.places.append(place)
            own.places[0].set()
            if len(self._tenants) > MAX_TENANTS:
                self._tenants.popitem(last=False)
            return own

    def _hand_on(self, own: _Tenant, place: threading.Event) -> None:
        """Leave, from wherever it stands: who is the first then has the turn."""
        with self._lock:
            own.places.remove(place)
            if own.places:
                own.places[0].set()

    def _wait_for_those_before(self, own: _Tenant) -> None:
        """Wait where it is time to, and note how long that much took. For who has the turn."""
        if own.ahead < own.most:
            return
        ended = self._wait(own.where)
        seconds = self._clock() - own.since
        # What was there already when it was looked may have been there for long.
        is_known = seconds <= CONTESTED_SECONDS or not all(each.at_once for each in ended)
        if is_known and all(each.how in (How.STORED, How.BEHIND) for each in ended):
            fit = own.ahead * CONTESTED_SECONDS / max(seconds, CONTESTED_SECONDS / 2)
            own.most = min(AT_ONCE, max(LEAST, round(fit)))
        own.ahead = 0
        own.where = set()
