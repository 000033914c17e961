"""Who is turned away in the event loop, by what is known of the quotas; nobody is asked."""

from __future__ import annotations

from collections.abc import Hashable

from api.edge.calls import KnownQuotas
from api.edge.kinds import READING, SENDING
from api.edge.pools import Busy
from api.http.reading import is_counted
from servioticy.domain.known_tokens import tenant_of
from servioticy.domain.quotas import REQUESTS, Exceeded


class TurningAway:
    """Refuses what a tenant may not have now: that costs no thread and asks no store."""

    def __init__(self, quotas: KnownQuotas | None, queue_of_one: int) -> None:
        """`queue_of_one` requests wait of whoever is not a known tenant."""
        self._quotas = quotas
        self._queue_of_one = queue_of_one

    def check(self, who: Hashable, kind: str, path: str = "") -> None:
        """Raises Busy for updates, and for reads, of who has used up a quota of them."""
        tenant = tenant_of(who)
        if tenant is None or self._quotas is None:
            return
        exceeded = None
        if kind in SENDING:
            exceeded = self._quotas.beyond(tenant)
        elif kind in READING and is_counted(path):
            exceeded = self._quotas.beyond_reading(tenant)
        if exceeded is not None:
            raise Busy(429, exceeded)

    def longest_of(self, who: Hashable) -> int:
        """How many requests of a caller may wait for one kind of thread."""
        tenant = tenant_of(who)
        if tenant is None or self._quotas is None:
            return self._queue_of_one
        return self._quotas.most(tenant, REQUESTS).most

    def told(self, who: Hashable, busy: Busy) -> Busy:
        """The same, with the quota where too many requests of a tenant wait."""
        tenant = tenant_of(who)
        if busy.status != 429 or tenant is None or self._quotas is None:
            return busy
        return Busy(429, Exceeded(self._quotas.most(tenant, REQUESTS), 1))
