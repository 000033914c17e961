"""How often somebody without a token may be wrong: of each address, and of all together.

Only what is refused counts, so that many devices behind one address do not stand in each
other's way. Whoever has been wrong too often is not even looked at: right or wrong, the answer
is the same.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from api.http.errors import Conflict, NotFound, TooMany

MAX_ADDRESSES = 10_000


class Bucket(NamedTuple):
    """So many at once, and so many more each second."""

    most: float
    per_second: float


OF_AN_ADDRESS = Bucket(20, 0.5)
OF_ALL = Bucket(1_000, 100)
"""Far from what it takes to guess a code; it bounds what guessing costs the store."""


class Attempts:
    """Counts what was refused, in this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """The clock gives seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._of: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """of each address what is left, and when it was so"""
        self._all = OF_ALL.most, clock()

    @contextmanager
    def counted(self, address: str) -> Iterator[None]:
        """Count it where what is done inside is refused. Raises TooMany."""
        network = _network(address)
        with self._lock:
            if min(self._left(network), self._left_of_all()) < 1:
                raise TooMany("Too much has been refused: wait, and look what is wrong")
        try:
            yield
        except (NotFound, Conflict):
            self._note(network)
            raise

    def _note(self, network: str) -> None:
        with self._lock:
            now = self._clock()
            self._of[network] = self._left(network) - 1, now
            self._all = self._left_of_all() - 1, now
            self._of.move_to_end(network)
            if len(self._of) > MAX_ADDRESSES:
                self._of.popitem(last=False)

    def _left(self, network: str) -> float:
        known = self._of.get(network)
        return OF_AN_ADDRESS.most if known is None else self._filled(OF_AN_ADDRESS, *known)

    def _left_of_all(self) -> float:
        return self._filled(OF_ALL, *self._all)

    def _filled(self, bucket: Bucket, left: float, at: float) -> float:
        return min(bucket.most, left + bucket.per_second * (self._clock() - at))


def _network(address: str) -> str:
    """Return what somebody has of addresses: of the sixth version a whole network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ipaddress.ip_network((int(found), 64), strict=False).network_address)
