"""Asks whether a tenant may have more. Nobody else does: what a quota is stands in one table.

Rates are buckets of this process. What is metered, the bytes that are stored and what an
operator has said of a tenant are asked for now and then: a question an update would cost more
than the update.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from servioticy.domain.quotas import LATER_SECONDS, QUOTAS, Exceeded, Quota
from servioticy.ports.statements import Statements

SECONDS = 5.0
"""So old may be what is known of a tenant."""
MAX_KNOWN = 10_000
METERED = ("computations", "processor-seconds", "deliveries", "stored-bytes")
"""As the statement `used` tells them."""
COUNTED = ("documents", "streams", "subscriptions", "members")
"""Those with a statement of their own."""


@dataclass(slots=True)
class _Known:
    """What is known of a tenant, and its buckets."""

    at: float
    limits: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    hour_ends: float = 0.0
    counts: dict[str, tuple[float, int]] = field(default_factory=dict)
    """when they were counted, and how many there were: to count many takes a while"""
    buckets: dict[str, tuple[float, float]] = field(default_factory=dict)
    """of each rate, what is left, and when it was so"""


class Quotas:
    """The limits of each tenant, and how much of them is used."""

    def __init__(
        self,
        stored: Statements,
        defaults: Mapping[str, int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`defaults` are an operator's, for all tenants of which nothing else is said."""
        self._stored = stored
        self._defaults = {name: each.most for name, each in QUOTAS.items()} | dict(defaults or {})
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[int, _Known] = OrderedDict()

    def send(self, tenant: int, updates: int, size: int) -> Exceeded | None:
        """Count updates of so many bytes that come now; else what the tenant has used up."""
        known = self._of(tenant)
        for name in METERED:
            exceeded = self._metered(known, name)
            if exceeded is not None:
                return exceeded
        wanted = {"updates": updates, "update-bytes": size}
        with self._lock:
            for name, amount in wanted.items():
                most, left = self._left(known, name)
                # What is larger than a full bucket may come when it is full.
                if left < min(amount, most) or most == 0:
                    return Exceeded(self._quota(known, name), 1)
            for name, amount in wanted.items():
                left, at = known.buckets[name]
                known.buckets[name] = left - amount, at
        return None

    def add(self, tenant: int, **more: int) -> Exceeded | None:
        """Tell what the tenant would have too much of if so many were added; None: of nothing."""
        known = self._of(tenant)
        for name, amount in more.items():
            most = self._limit(known, name)
            if amount > 0 and self._counted(tenant, known, name, amount, most) > most:
                return Exceeded(self._quota(known, name), LATER_SECONDS)
        return None

    def metered(self, tenant: int, name: str) -> Exceeded | None:
        """Tell whether the tenant has used up what is metered of this."""
        return self._metered(self._of(tenant), name)

    def of(self, tenant: int) -> list[tuple[Quota, int | None]]:
        """Return all quotas of a tenant as they are for it, each with what it has used."""
        known = self._of(tenant)
        used: dict[str, int | None] = {name: self._count(tenant, name) for name in COUNTED}
        used |= known.used
        with self._lock:
            for name in ("updates", "update-bytes"):
                most, left = self._left(known, name)
                used[name] = max(0, round(most - left))
        return [(self._quota(known, name), used.get(name)) for name in QUOTAS]

    def _of(self, tenant: int) -> _Known:
        """What is known, asked anew where that is long ago; others go by the old meanwhile."""
        now = self._clock()
        with self._lock:
            known = self._known.get(tenant)
            if known is not None and now - known.at < SECONDS:
                return known
            if known is not None:
                known.at = now
        limits: dict[str, int] = dict(self._stored.rows("limits", tenant=tenant))
        *used, left = self._stored.rows("used", tenant=tenant)[0]
        with self._lock:
            known = self._known.setdefault(tenant, _Known(now))
            known.at, known.limits = now, limits
            known.used, known.hour_ends = dict(zip(METERED, used, strict=True)), now + left
            self._known.move_to_end(tenant)
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        return known

    def _metered(self, known: _Known, name: str) -> Exceeded | None:
        if known.used.get(name, 0) < self._limit(known, name):
            return None
        quota = self._quota(known, name)
        wait = LATER_SECONDS if quota.window is None else known.hour_ends - self._clock()
        return Exceeded(quota, max(1, round(wait)))

    def _left(self, known: _Known, name: str) -> tuple[int, float]:
        """How much fits into a bucket, and what is left in it now."""
        most, now = self._limit(known, name), self._clock()
        left, at = known.buckets.get(name, (most, now))
        left = min(most, left + most * (now - at))
        known.buckets[name] = left, now
        return most, left

    def _counted(self, tenant: int, known: _Known, name: str, amount: int, most: int) -> int:
        """How many there are with these; far below the limit, by what was counted last."""
        at, count = known.counts.get(name, (0.0, most))
        if count + amount > most // 2 or self._clock() - at >= SECONDS:
            at, count = self._clock(), self._count(tenant, name)
        known.counts[name] = at, count + amount
        return count + amount

    def _count(self, tenant: int, name: str) -> int:
        count: int = self._stored.rows(name, tenant=tenant)[0][0]
        return count

    def _limit(self, known: _Known, name: str) -> int:
        return known.limits.get(name, self._defaults[name])

    def _quota(self, known: _Known, name: str) -> Quota:
        return QUOTAS[name]._replace(most=self._limit(known, name))
