"""What the conditions of tenants' actions take of the processor, and who may have no more of it.

Their code is charged to the tenant as that of its composites is: to the stream that asks for the
action, in the hour's account, by `delivery/accounts.py`.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping

from servioticy.domain.model import StreamRef
from servioticy.domain.quotas import Exceeded
from servioticy.ports.usage import Spent

MAX_COUNTED = 100_000
"""Streams that are kept while the store is away; what further ones spend is not charged."""

log = logging.getLogger("servioticy.delivery")


class Spending:
    """Counts for any thread; who may spend no more is asked and told in the loop's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: Counter[Spent] = Counter()
        self._exceeded: Mapping[int, Exceeded] = {}

    def note(self, tenant: int, stream: StreamRef, microseconds: int) -> None:
        """Note what a condition of a stream has taken."""
        self.add({Spent(tenant, *stream): microseconds})

    def add(self, spent: Mapping[Spent, int]) -> None:
        """Count these, too."""
        with self._lock:
            for key, microseconds in spent.items():
                if key in self._spent or len(self._spent) < MAX_COUNTED:
                    self._spent[key] += microseconds

    def take(self) -> Mapping[Spent, int]:
        """Return the microseconds that have been counted, and count from nothing again."""
        with self._lock:
            taken, self._spent = self._spent, Counter()
        return {key: microseconds for key, microseconds in taken.items() if microseconds}

    def refusal(self, tenant: int) -> str | None:
        """Return why no condition of this tenant is looked at now; None: it may have some."""
        exceeded = self._exceeded.get(tenant)
        return None if exceeded is None else exceeded.message

    def change(self, exceeded: Mapping[int, Exceeded]) -> None:
        """Let conditions of these rest from now on, and of no others."""
        for tenant in exceeded.keys() - self._exceeded:
            log.info("conditions_rest", extra={"tenant": tenant})
        self._exceeded = exceeded
