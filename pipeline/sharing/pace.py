"""How long an update of each tenant takes, as far as is known: what batches are cut by."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pipeline.sharing.costs import Trees

T = TypeVar("T")

UNKNOWN_SECONDS = 0.0005
"""For a tenant never met: slow for most, so that a first batch is not a long one."""

SLOW_SECONDS = 0.01
"""An update whose tree takes more of the processor holds up others that come behind it. That of
a tenant not met yet may."""

HOLDS_UP_SECONDS = 0.05
SLOW_FOR_SECONDS = 60.0
"""So long an update of a tenant is not computed with the others' after trees of its have held them
up for that, or one that took too long by itself: averages forget soon what is seldom."""

PREPARES_FOR_SECONDS = 5.0
"""And so long after programs for its trees have taken that to be made ready: there may be more."""

WEIGHT = 0.3
PROCESSOR_WEIGHT = 0.1
"""Less: who is slow now and then is slow."""

RUNNERS_SECONDS = 60.0
"""Where no scripts have run in a tenant's trees for so long none are expected in the next one; nor
would their process wait any longer."""

MAX_KNOWN = 10_000


@dataclass(slots=True)
class _Tree:
    """What one of a tenant's is expected to take."""

    processor: float
    """Seconds for the computations in it."""
    ran_at: float = -math.inf
    """When scripts last ran in it."""
    slow_until: float = -math.inf


class Pace:
    """Moving averages by tenant: seconds an update takes, and processor seconds of its tree.

    Who is slow is known by the latter: on a busy machine everything takes long. For several
    threads.
    """

    def __init__(
        self,
        is_ready: Callable[[int], bool] = lambda _tenant: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_ready` tells whether a tenant's scripts need not wait for the start of a process."""
        self._is_ready = is_ready
        self._clock = clock
        self._lock = threading.Lock()
        self._seconds: OrderedDict[int, float] = OrderedDict()
        self._trees: OrderedDict[int, _Tree] = OrderedDict()

    def of(self, tenant: int) -> float:
        """Seconds that one update of this tenant is expected to take."""
        return self._seconds.get(tenant, UNKNOWN_SECONDS)

    def of_tree(self, tenant: int) -> float:
        """Processor seconds that one of its trees is expected to take."""
        known = self._trees.get(tenant)
        return SLOW_SECONDS if known is None else known.processor

    def knows(self, tenant: int) -> bool:
        """Whether an update of this tenant has been computed before."""
        return tenant in self._trees

    def is_slow(self, tenant: int) -> bool:
        """Whether an update of this tenant may hold up others, as far as is known.

        Where scripts run in its trees their process would be waited for.
        """
        known = self._trees.get(tenant)
        if known is None or self._takes_long(known):
            return True
        runs = known.ran_at >= self._clock() - RUNNERS_SECONDS
        return runs and not self._is_ready(tenant)

    def _takes_long(self, tree: _Tree) -> bool:
        return tree.processor >= SLOW_SECONDS or self._clock() < tree.slow_until

    def learn(self, grown: Mapping[int, Trees]) -> None:
        """Learn what the trees of each tenant's updates took."""
        with self._lock:
            for tenant, trees in grown.items():
                each = trees.seconds / trees.updates
                before = self._seconds.get(tenant, each)
                # What is slower than believed is believed at once.
                _note(self._seconds, tenant, max(each, before + WEIGHT * (each - before)))
                self._learn_tree(tenant, trees)

    def _learn_tree(self, tenant: int, trees: Trees) -> None:
        each, now = trees.processor / trees.updates, self._clock()
        known = self._trees.get(tenant)
        if known is None:  # that its programs were made ready is no sign of how it goes on
            known = _Tree(each)
        elif trees.preparing >= HOLDS_UP_SECONDS:
            known.slow_until = max(known.slow_until, now + PREPARES_FOR_SECONDS)
        known.processor += PROCESSOR_WEIGHT * (each - known.processor)
        are_slow = each >= SLOW_SECONDS and trees.processor >= HOLDS_UP_SECONDS
        if trees.overlong or are_slow:
            known.slow_until = now + SLOW_FOR_SECONDS
        if trees.ran:
            known.ran_at = now
        _note(self._trees, tenant, known)


def _note(known: OrderedDict[int, T], tenant: int, value: T) -> None:
    known[tenant] = value
    known.move_to_end(tenant)
    if len(known) > MAX_KNOWN:
        known.popitem(last=False)
