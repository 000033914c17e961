"""Who has had more than a share of a partition's time while others wanted some; and what an update
of each has cost."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice

BURST_SECONDS = 0.25
"""What a tenant may use at once before the share counts."""

MAX_DEBT_SECONDS = 2.0
"""What nobody wanted when it was used is not held against a tenant for long."""

ACTIVE_SECONDS = 10.0
"""A tenant is active for so long after an update of one of its streams has come."""

MAX_ACCOUNTS = 10_000

UNKNOWN_SECONDS = 0.0005
"""What an update of a tenant never met costs: much for most, so that a first piece is small."""

WEIGHT = 0.3
"""Of the latest piece; but what is dearer than believed is believed at once."""


@dataclass(slots=True)
class _Account:
    balance: float = BURST_SECONDS
    at: float = float("inf")
    each: float = UNKNOWN_SECONDS
    """Seconds that an update costs."""
    is_met: bool = False


class Shares:
    """A bucket of seconds for each tenant, filled at the rate of the share.

    Nobody is over a share while nobody else is active: time that nobody wants is free. Active is
    whose updates come, its own or over a border, or wait. For several threads.
    """

    def __init__(self, share: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._share = share
        self._clock = clock
        self._lock = threading.Lock()
        self._accounts: OrderedDict[int, _Account] = OrderedDict()
        self._seen: OrderedDict[int, float] = OrderedDict()
        self._indebted: set[int] = set()
        """Who had less than no time when last charged: a crowd of others need not be looked at."""

    def saw(self, tenants: Iterable[int]) -> None:
        """Note that updates of streams of these tenants have come."""
        now = self._clock()
        with self._lock:
            for each in tenants:
                self._seen[each] = now
                self._seen.move_to_end(each)
            while len(self._seen) > MAX_ACCOUNTS:
                self._seen.popitem(last=False)

    def charge(self, seconds: Mapping[int, float]) -> None:
        """Note how many seconds of the partition's time the streams of each tenant have used."""
        now = self._clock()
        with self._lock:
            for tenant, used in seconds.items():
                balance = max(-MAX_DEBT_SECONDS, self._balance(tenant, now) - used)
                account = self._account(tenant)
                account.balance, account.at = balance, now
                if balance < 0:
                    self._indebted.add(tenant)
            self._trim()

    def learn(self, tenant: int, each: float) -> None:
        """Note how many seconds each update of a piece of this tenant has cost."""
        with self._lock:
            account = self._account(tenant)
            before = account.each if account.is_met else each
            account.each = max(each, before + WEIGHT * (each - before))
            account.is_met = True
            self._trim()

    def each(self, tenant: int) -> float:
        """Seconds that an update of this tenant costs, as far as is known."""
        account = self._accounts.get(tenant)
        return UNKNOWN_SECONDS if account is None else account.each

    def knows(self, tenant: int) -> bool:
        """Whether that is known."""
        account = self._accounts.get(tenant)
        return account is not None and account.is_met

    def _account(self, tenant: int) -> _Account:
        account = self._accounts.setdefault(tenant, _Account())
        self._accounts.move_to_end(tenant)
        return account

    def _trim(self) -> None:
        while len(self._accounts) > MAX_ACCOUNTS:
            self._accounts.popitem(last=False)

    @property
    def contested(self) -> bool:
        """Whether more than one tenant is active."""
        return len(self._active()) > 1

    def over(self) -> Set[int]:
        """The tenants that have used more than their share while somebody else is active."""
        active = self._active()
        if not active:
            return frozenset()
        lone = active[0] if len(active) == 1 else None
        now = self._clock()
        with self._lock:
            self._indebted = {each for each in self._indebted if self._balance(each, now) < 0}
            return self._indebted - {lone}

    def debts(self) -> Mapping[int, float]:
        """By how many seconds each of these tenants is over its share."""
        return {each: max(0.0, -self.balance(each)) for each in self.over()}

    def _active(self) -> Sequence[int]:
        """The tenants that are active; two are enough."""
        since = self._clock() - ACTIVE_SECONDS
        with self._lock:
            newest = islice(reversed(self._seen.items()), 2)
            return [tenant for tenant, at in newest if at >= since]

    def balance(self, tenant: int) -> float:
        """Seconds that the tenant has; less than none where it is over its share."""
        return self._balance(tenant, self._clock())

    def _balance(self, tenant: int, now: float) -> float:
        account = self._accounts.get(tenant)
        if account is None:
            return BURST_SECONDS
        since = max(0.0, now - account.at)
        return min(BURST_SECONDS, account.balance + self._share * since)
