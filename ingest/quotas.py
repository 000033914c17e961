"""Asks whether a tenant may send more. What a quota is stands in one table.

Rates are buckets of this process: each that takes updates has its own. What is metered, the
bytes that are stored and what an operator has said of a tenant are asked for now and then, for
all tenants whose updates came together: a question an update would cost more than the update.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from servioticy.domain.quotas import (
    DELIVERIES,
    LATER_SECONDS,
    READ_SECONDS,
    Exceeded,
    Kind,
    Quota,
)
from servioticy.ports.statements import Statements

SECONDS = 5.0
"""So old may be what is known of a tenant."""
MAX_KNOWN = 10_000


@dataclass(slots=True)
class Known:
    """What this process knows of a tenant, and its buckets."""

    at: float
    limits: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    over: bool = False
    """whether anything of what is metered is used up: mostly not, and then no more is asked"""
    hour_ends: float = 0.0
    counts: dict[str, tuple[float, int]] = field(default_factory=dict)
    """when they were counted, and how many there were: to count many takes a while"""
    buckets: dict[str, tuple[float, float]] = field(default_factory=dict)
    """of each rate, what is left, and when it was so"""


class SendersQuotas:
    """What each tenant may send, and how much of that is used."""

    def __init__(
        self,
        stored: Statements,
        quotas: Mapping[str, Quota],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`quotas` are those of a tenant of which nothing else is said."""
        self._stored = stored
        self._quotas = quotas
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[int, Known] = OrderedDict()
        self._rates = self._of_kind(Kind.RATE)
        self._metered = self._of_kind(Kind.METERED)
        # Who may be given, or read, no more may send: what comes is stored all the same.
        others = (DELIVERIES, READ_SECONDS)
        self._of_senders = tuple(each for each in self._metered if each not in others)

    def learn(self, tenants: Collection[int]) -> None:
        """Ask about those of whom nothing is known that is new enough, with one question.

        Others go by the old meanwhile. Raises Unavailable.
        """
        now = self._clock()
        with self._lock:
            unknown = {each for each in tenants if not self._is_fresh(each, now)}
            for each in unknown & self._known.keys():
                self._known[each].at = now
        if not unknown:
            return
        rows = self._stored.rows("known", tenants=sorted(unknown))
        with self._lock:
            for tenant, limits, left, *used in rows:
                known = self._known.setdefault(tenant, Known(now))
                known.at, known.limits, known.hour_ends = now, limits, now + left
                known.used = dict(zip(self._metered, used, strict=True))
                known.over = any(
                    amount >= self._limit(known, name) for name, amount in known.used.items()
                )
                self._known.move_to_end(tenant)
            while len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)

    def send(self, tenant: int, updates: int, size: int) -> Exceeded | None:
        """Count updates of so many bytes that come now; else what the tenant has used up."""
        known = self._of(tenant)
        exceeded = self._used_up(known, self._of_senders)
        if exceeded is not None:
            return exceeded
        wanted = updates, size
        with self._lock:
            for name, amount in zip(self._rates, wanted, strict=True):
                most, left = self._left(known, name)
                # What is larger than a full bucket may come when it is full.
                if left < min(amount, most) or most == 0:
                    return Exceeded(self._quota(known, name), 1)
            for name, amount in zip(self._rates, wanted, strict=True):
                left, at = known.buckets[name]
                known.buckets[name] = left - amount, at
        return None

    def give_back(self, tenant: int, updates: int, size: int) -> None:
        """What was counted by send() did not come."""
        with self._lock:
            known = self._known.get(tenant)
            for name, amount in zip(self._rates, (updates, size), strict=True):
                if known is not None and name in known.buckets:
                    left, at = known.buckets[name]
                    known.buckets[name] = left + amount, at

    def beyond(self, tenant: int, size: int = 1) -> Exceeded | None:
        """Tell what keeps an update out that takes so many bytes to send; asks nobody.

        As far as is known. So who is refused a thousand times a second costs little, and waits
        for nobody.
        """
        with self._lock:
            known = self._known.get(tenant)
            if known is None:
                return None
            for name, amount in zip(self._rates, (1, size), strict=True):
                most, left = self._left(known, name)
                if left < min(amount, most) or most == 0:
                    return Exceeded(self._quota(known, name), 1)
        return self._used_up(known, self._of_senders)

    def most(self, tenant: int, name: str) -> Quota:
        """Return a quota as it is for the tenant, as far as is known; asks nobody."""
        with self._lock:
            known = self._known.get(tenant)
        return self._quotas[name] if known is None else self._quota(known, name)

    def _of_kind(self, kind: Kind) -> tuple[str, ...]:
        return tuple(each.name for each in self._quotas.values() if each.kind is kind)

    def _of(self, tenant: int) -> Known:
        """What is known, asked anew where that is long ago."""
        now = self._clock()
        with self._lock:
            found = self._known.get(tenant)
            if found is not None and now - found.at < SECONDS:
                return found
        self.learn((tenant,))
        with self._lock:
            return self._known.setdefault(tenant, Known(self._clock()))

    def _is_fresh(self, tenant: int, now: float) -> bool:
        known = self._known.get(tenant)
        return known is not None and now - known.at < SECONDS

    def _used_up(self, known: Known, names: Iterable[str], more: float = 0.0) -> Exceeded | None:
        if not known.over and not more:
            return None
        for name in names:
            if known.used.get(name, 0) + more >= self._limit(known, name):
                quota = self._quota(known, name)
                hourly = quota.window is not None
                wait = known.hour_ends - self._clock() if hourly else LATER_SECONDS
                return Exceeded(quota, max(1, round(wait)))
        return None

    def _left(self, known: Known, name: str) -> tuple[int, float]:
        """How much fits into a bucket, and what is left in it now."""
        most, now = self._limit(known, name), self._clock()
        left, at = known.buckets.get(name, (most, now))
        left = min(most, left + most * (now - at))
        known.buckets[name] = left, now
        return most, left

    def _limit(self, known: Known, name: str) -> int:
        return known.limits.get(name, self._quotas[name].most)

    def _quota(self, known: Known, name: str) -> Quota:
        return self._quotas[name]._replace(most=self._limit(known, name))
