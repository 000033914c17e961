"""Tells of what takes so much that a partition may soon be too small for it.

A component is computed in order, by one task, and gets no more than a core however many partitions
there are. Who sends to it sees that first as lateness; so he is told where he asks why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from servioticy.domain.cache import Cache
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.loads import Loads
from servioticy.rebalancing import HOUR

MOST = 0.5
"""Of a core, in the mean of this hour and the one before: what a tenant has while others are
active, and what leaves room for hours that are busier than the mean."""
KNOWN_MS = 60_000
"""So old may be what is told: it is summed over all that a component has."""
KEPT_BYTES, EACH_BYTES = 1_000_000, 200
HINT = (
    "All that is computed from one another is computed in order, in one partition, which has no "
    "more than a core: what has nothing to do with each other is better not read by one composite"
)


class LargeComponents:
    """Knows which components take too much. Threads may share it."""

    def __init__(self, loads: Loads, now: Callable[[], int]) -> None:
        """`now` is in ms."""
        self._loads = loads
        self._now = now
        self._known: Cache[tuple[int, str], tuple[int, float]] = Cache(KEPT_BYTES)

    def told(self, key: ServiceObjectKey) -> dict[str, Any]:
        """Return what is told of the component of a Service Object; mostly nothing.

        Raises Unavailable.
        """
        component = self._loads.component_of(key)
        if component is None:
            return {}
        now = self._now()
        at, busy = self._known.get((key.tenant, component)) or (-KNOWN_MS, 0.0)
        since = (now // HOUR - 1) * HOUR
        if now - at >= KNOWN_MS:
            load = self._loads.load_of(key.tenant, component, since)
            busy = load / 1000 / (now - since)
            self._known.put((key.tenant, component), (now, busy), EACH_BYTES)
        if busy < MOST:
            return {}
        return {"component": {"from": since, "busy": busy, "hint": HINT}}
