"""How long an update of each tenant takes, as far as is known: what batches are cut by."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

T = TypeVar("T")

UNKNOWN_SECONDS = 0.0005
"""For a tenant never met: slow for most, so that a first batch is not a long one."""

SLOW_SECONDS = 0.01
"""An update whose scripts take more of the processor holds up others that come behind it. That of
a tenant not met yet may."""

WEIGHT = 0.3
SCRIPTS_WEIGHT = 0.1
"""Less: who is slow now and then is slow."""

RUNNERS_LEARNED = 50
"""So often something else is learned of a tenant's trees, at least, until it is forgotten whose
scripts have run in them."""

MAX_KNOWN = 10_000


class Trees(NamedTuple):
    """What the trees of a tenant's updates took, whosesoever composites are in them."""

    updates: int
    seconds: float = 0.0
    """Of all, by the clock on the wall."""
    script_seconds: float = 0.0
    """Of the processor."""
    runners: Set[int] = frozenset()
    """Whose scripts have run."""


@dataclass(slots=True)
class _Scripts:
    """Those of one tenant's trees."""

    seconds: float
    """Of the processor, for one tree."""
    runners: Set[int] = frozenset()
    earlier: Set[int] = frozenset()
    learned: int = 0


class Pace:
    """Moving averages by tenant: seconds an update takes, and processor seconds of scripts.

    Who is slow is known by the latter: on a busy machine everything takes long. They are the
    scripts of its whole tree: who is held up does not ask whose they are. For several threads.
    """

    def __init__(self, is_ready: Callable[[int], bool] = lambda _tenant: True) -> None:
        """`is_ready` tells whether a tenant's scripts need not wait for the start of a process."""
        self._is_ready = is_ready
        self._lock = threading.Lock()
        self._seconds: OrderedDict[int, float] = OrderedDict()
        self._scripts: OrderedDict[int, _Scripts] = OrderedDict()

    def of(self, tenant: int) -> float:
        """Seconds that one update of this tenant is expected to take."""
        return self._seconds.get(tenant, UNKNOWN_SECONDS)

    def of_scripts(self, tenant: int) -> float:
        """Processor seconds that the scripts of one of its trees are expected to take."""
        known = self._scripts.get(tenant)
        return SLOW_SECONDS if known is None else known.seconds

    def knows(self, tenant: int) -> bool:
        """Whether an update of this tenant has been computed before."""
        return tenant in self._scripts

    def is_slow(self, tenant: int) -> bool:
        """Whether an update of this tenant may hold up others, as far as is known.

        The process of each tenant whose scripts run in its trees would be waited for.
        """
        known = self._scripts.get(tenant)
        if known is None or known.seconds >= SLOW_SECONDS:
            return True
        return not all(map(self._is_ready, known.runners | known.earlier))

    def learn(self, grown: Mapping[int, Trees]) -> None:
        """Learn what the trees of each tenant's updates took."""
        with self._lock:
            for tenant, trees in grown.items():
                each = trees.seconds / trees.updates
                before = self._seconds.get(tenant, each)
                # What is slower than believed is believed at once.
                _note(self._seconds, tenant, max(each, before + WEIGHT * (each - before)))
                self._learn_scripts(tenant, trees)

    def _learn_scripts(self, tenant: int, trees: Trees) -> None:
        each = trees.script_seconds / trees.updates
        known = self._scripts.get(tenant) or _Scripts(each)
        known.seconds += SCRIPTS_WEIGHT * (each - known.seconds)
        known.runners = known.runners | trees.runners
        known.learned += 1
        if known.learned % RUNNERS_LEARNED == 0:
            known.runners, known.earlier = frozenset(), known.runners
        _note(self._scripts, tenant, known)


def _note(known: OrderedDict[int, T], tenant: int, value: T) -> None:
    known[tenant] = value
    known.move_to_end(tenant)
    if len(known) > MAX_KNOWN:
        known.popitem(last=False)
