"""Who has used up a quota: what is metered is asked for, now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from pipeline.sharing.rules import Refusal, its_quota
from servioticy.domain.quotas import RESTING, Quota
from servioticy.ports.accounts import StreamAccounts

SECONDS = 10.0
"""So old may be what is known: accounts are settled as seldom."""


class UsedUp:
    """Tenants whose composites rest, where others' updates wake them, until the hour is over or
    something stored is gone.

    Their own updates the API does not take any more; what it has taken is computed.
    """

    def __init__(
        self, quotas: Mapping[str, Quota], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`quotas` are those of a tenant of which nothing else is said; without any none rest."""
        self._most = {name: quotas[name].most for name in RESTING if quotas}
        self._clock = clock
        self._asked_at = float("-inf")
        self._refused: Mapping[int, Refusal] = {}

    def refused(self, store: StreamAccounts) -> Mapping[int, Refusal]:
        """Return them, each with its reason. Raises Unavailable."""
        if self._most and self._clock() - self._asked_at >= SECONDS:
            found = store.used_up(self._most)
            self._refused = {tenant: its_quota(name) for tenant, name in found.items()}
            self._asked_at = self._clock()
        return self._refused
