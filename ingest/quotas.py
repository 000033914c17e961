"""Asks whether a tenant may send more. What a quota is stands in one table.

Rates are buckets of this process, which others take from that let in updates of the same tenant
(`sharing.py`): what each has let in is told in seconds of the tenant's quota. What is metered, the
bytes that are stored and what an operator has said of a tenant are asked for now and then, for
all tenants whose updates came together: a question an update would cost more than the update.
"""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ingest.allowance import Allowance
from servioticy.domain.quotas import (
    DELIVERIES,
    LATER_SECONDS,
    READ_SECONDS,
    Exceeded,
    Kind,
    Quota,
)
from servioticy.ports.rates import LetIn
from servioticy.ports.statements import Statements

SECONDS = 5.0
"""So old may be what is known of a tenant."""
MAX_KNOWN = 10_000
NEVER = -math.inf
"""Asked so long ago: of a tenant of whom no more is known than what others have let in."""
LATE_SECONDS = 1.0
"""So late other processes know at most what was let in here."""
UNTOLD = 0.25
"""So much of a second's quota at most all other processes together keep for themselves."""
ROUNDED = 1e-6
"""Seconds that a wait may be too long by the arithmetic alone."""


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
    rates: dict[str, Allowance] = field(default_factory=dict)


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
        self._others, self._border = 0, math.inf
        self._to_tell: set[int] = set()
        """those of whom others are to be told at the next time"""
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
                if self._known[each].at != NEVER:
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
            self._forget_oldest()

    def send(self, tenant: int, updates: int, size: int) -> Exceeded | None:
        """Count updates of so many bytes that come now; else what the tenant has used up."""
        known = self._of(tenant)
        exceeded = self._used_up(known, self._of_senders)
        if exceeded is not None:
            return exceeded
        with self._lock:
            exceeded = self._waiting(known, updates, size)
            if exceeded is None:
                self._take(tenant, known, updates, size)
        return exceeded

    def give_back(self, tenant: int, updates: int, size: int) -> None:
        """What was counted by send() did not come."""
        with self._lock:
            known = self._known.get(tenant)
            if known is not None and len(known.rates) == len(self._rates):
                self._take(tenant, known, -updates, -size)

    def beyond(self, tenant: int, size: int = 1) -> Exceeded | None:
        """Tell what keeps an update out that takes so many bytes to send; asks nobody.

        As far as is known. So who is refused a thousand times a second costs little, and waits
        for nobody.
        """
        with self._lock:
            known = self._known.get(tenant)
            if known is None or known.at == NEVER:
                return None
            exceeded = self._waiting(known, 1, size)
        return exceeded or self._used_up(known, self._of_senders)

    def share(self, others: int) -> None:
        """So many other processes let in updates, and are to be told of what is let in here."""
        with self._lock:
            self._others = others
            self._border = UNTOLD / others if others else math.inf
        if not others:
            self.forget_untold()

    def forget_untold(self) -> None:
        """Nobody is told any more of what was let in until now."""
        with self._lock:
            self._to_tell.clear()
            for known in self._known.values():
                for allowance in known.rates.values():
                    allowance.untold = 0.0

    def to_tell(self, most: int) -> list[LetIn]:
        """Return what was let in of tenants of whom it is much, and count it as told.

        Of so many tenants at most: of whom it is most.
        """
        with self._lock:
            there = {each: self._known[each] for each in self._to_tell if each in self._known}
            chosen = heapq.nlargest(most, there, key=lambda each: _untold(there[each]))
            self._to_tell = there.keys() - set(chosen)
            return [LetIn(tenant, self._told(there[tenant])) for tenant in chosen]

    def hear(self, let_in: Iterable[LetIn], pause: float = 0.0) -> None:
        """Another process has let in so much, of tenants that may be unknown here.

        Nothing was heard for a `pause` of so many seconds before: it may be as old.
        """
        old = max(LATE_SECONDS, pause)
        with self._lock:
            for tenant, seconds in let_in:
                if len(seconds) != len(self._rates):
                    continue  # from a release that has other ones
                known = self._known.setdefault(tenant, Known(NEVER))
                for name, amount in zip(self._rates, seconds, strict=True):
                    self._filled(known, name).hear(amount, old)
            self._forget_oldest()

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

    def forget_unused(self, seconds: float) -> int:
        """Forget tenants that were not asked for, for so long; return how many.

        Not those whose rates are not full again, or of whom others are still to be told.
        """
        before = self._clock() - seconds
        with self._lock:
            silent = [tenant for tenant, known in self._known.items() if known.at <= before]
        return sum([self._forget_if(tenant, before) for tenant in silent])

    def _forget_if(self, tenant: int, before: float) -> bool:
        """One at a time: whoever sends waits for no more."""
        with self._lock:
            known = self._known.get(tenant)
            if known is None or known.at > before or tenant in self._to_tell:
                return False
            if is_full := self._is_full(known):
                del self._known[tenant]
            return is_full

    def _is_full(self, known: Known) -> bool:
        every = [self._filled(known, name) for name in known.rates]
        return all(each.left >= each.most for each in every)

    def _forget_oldest(self) -> None:
        while len(self._known) > MAX_KNOWN:
            tenant, _ = self._known.popitem(last=False)
            self._to_tell.discard(tenant)

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

    def _waiting(self, known: Known, *wanted: int) -> Exceeded | None:
        """Return the rate that so many updates, of so many bytes, have to wait for."""
        for name, amount in zip(self._rates, wanted, strict=True):
            wait = self._filled(known, name).wait(amount)
            if wait > 0:
                seconds = 1 if wait == math.inf else max(1, math.ceil(wait - ROUNDED))
                return Exceeded(self._quota(known, name), seconds)
        return None

    def _take(self, tenant: int, known: Known, *amounts: int) -> None:
        for name, amount in zip(self._rates, amounts, strict=True):
            allowance = known.rates[name]
            allowance.take(amount)
            if self._others and allowance.most:
                allowance.untold += amount / allowance.most
                if abs(allowance.untold) >= self._border:
                    self._to_tell.add(tenant)

    def _told(self, known: Known) -> tuple[float, ...]:
        untold = tuple(known.rates[name].untold for name in self._rates)
        for allowance in known.rates.values():
            allowance.untold = 0.0
        return untold

    def _filled(self, known: Known, name: str) -> Allowance:
        """Return what is left of a rate now."""
        most, now = self._limit(known, name), self._clock()
        allowance = known.rates.get(name)
        if allowance is None:
            allowance = known.rates[name] = Allowance(most, most, now)
        allowance.fill(most, now)
        return allowance

    def _limit(self, known: Known, name: str) -> int:
        return known.limits.get(name, self._quotas[name].most)

    def _quota(self, known: Known, name: str) -> Quota:
        return self._quotas[name]._replace(most=self._limit(known, name))


def _untold(known: Known) -> float:
    return max(abs(each.untold) for each in known.rates.values())
