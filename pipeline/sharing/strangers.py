"""What scripts take in the trees of others' updates: all of them together one share."""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

HORIZON_SECONDS = 2.0
"""What was used so long ago counts for a little more than a third."""

LIGHT_SECONDS = 0.001
"""Of the processor, for a tree: whose scripts take less are many where there are many updates, and
nobody waits for one of them."""

MAX_ACCOUNTS = 10_000


class Foreign(NamedTuple):
    """What the scripts of one tenant have taken in trees of others."""

    seconds: float = 0.0
    """Of the processor, with the starts of processes."""
    trees: float = 0.0

    def plus(self, other: Foreign) -> Foreign:
        """Return both together."""
        return Foreign(self.seconds + other.seconds, self.trees + other.trees)

    def times(self, part: float) -> Foreign:
        """Return a part of it."""
        return Foreign(self.seconds * part, self.trees * part)


class _Account(NamedTuple):
    used: Foreign = Foreign()
    at: float = 0.0

    def at_time(self, now: float) -> Foreign:
        """What still counts of it."""
        return self.used.times(math.exp((self.at - now) / HORIZON_SECONDS))


class Strangers:
    """Moving sums of what each tenant used in others' trees, against a share of all together.

    Each of them may be below a share of its own, and all of them together take a partition's
    time, and that of whoever lets them read its streams: its updates wait for their scripts. So
    while they take more than one tenant may, those are refused that take more than an equal
    part; what the others leave of theirs is shared by the rest. For several threads.
    """

    def __init__(self, share: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`share` is in seconds a second."""
        self._most = share * HORIZON_SECONDS
        self._clock = clock
        self._lock = threading.Lock()
        self._accounts: OrderedDict[int, _Account] = OrderedDict()
        self._all = _Account()

    def charge(self, used: Mapping[int, Foreign]) -> None:
        """Note what tenants have used in trees of others."""
        if not used:
            return
        now = self._clock()
        with self._lock:
            for tenant, new in used.items():
                known = self._accounts.get(tenant, _Account())
                self._accounts[tenant] = _Account(known.at_time(now).plus(new), now)
                self._accounts.move_to_end(tenant)
                self._all = _Account(self._all.at_time(now).plus(new), now)
            while len(self._accounts) > MAX_ACCOUNTS:
                self._accounts.popitem(last=False)

    def over(self) -> Set[int]:
        """Those who have taken more than their part while all together take too much."""
        now = self._clock()
        with self._lock:
            if self._all.at_time(now).seconds <= self._most:
                return frozenset()
            used = {tenant: each.at_time(now) for tenant, each in self._accounts.items()}
        level = _level([each.seconds for each in used.values()], self._most)
        return {
            tenant
            for tenant, each in used.items()
            if each.seconds > level and each.seconds >= LIGHT_SECONDS * each.trees
        }


def _level(amounts: list[float], most: float) -> float:
    """Return the largest amount that each may have where all together have no more than that."""
    left, cut = sum(amounts), 0
    lowest_first = [-each for each in amounts]
    heapq.heapify(lowest_first)
    while lowest_first and left - cut * lowest_first[0] > most:
        left += heapq.heappop(lowest_first)
        cut += 1
    return (most - left) / cut if cut else math.inf
