"""Asks whether a tenant may have more. Nobody else does: what a quota is stands in one table.

What it may send is asked as everywhere (`ingest/quotas.py`); beside it stands what the API alone
adds to, and what it reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from api.http.reading import Reading
from ingest.quotas import SECONDS, Known, SendersQuotas
from servioticy.domain.quotas import (
    DOCUMENT_BYTES,
    FILES_KNOWN,
    LATER_SECONDS,
    READ_SECONDS,
    Exceeded,
    Kind,
    Quota,
)
from servioticy.ports.statements import Statements

STATEMENTS = {DOCUMENT_BYTES: "document_bytes", FILES_KNOWN: "files_known"}
MANY = 10_000
"""Fewer are counted each time: it is quick, and of more nobody else adds half in some seconds."""


class Standing(NamedTuple):
    """How a tenant stands with a quota of its own."""

    quota: Quota
    used: int | None
    """None: another program counts it."""
    exceeded: Exceeded | None
    """Where it is metered and used up."""


class Quotas(SendersQuotas):
    """The limits of each tenant, and how much of them is used."""

    def __init__(
        self,
        stored: Statements,
        quotas: Mapping[str, Quota],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`quotas` are those of a tenant of which nothing else is said."""
        super().__init__(stored, quotas, clock)
        self.reading = Reading(stored)
        self._counted = self._of_kind(Kind.COUNTED)

    def has_read(self, tenant: int, seconds: float) -> None:
        """Count what a read took of the processor; it is stored some seconds later."""
        self.reading.note(tenant, seconds)

    def beyond_reading(self, tenant: int) -> Exceeded | None:
        """Tell what keeps reads of the tenant out now, as far as is known; asks nobody."""
        with self._lock:
            known = self._known.get(tenant)
        if known is None:
            return None
        return self._used_up(known, (READ_SECONDS,), self.reading.seconds(tenant))

    @contextmanager
    def adding(self, tenant: int, **more: int) -> Iterator[Exceeded | None]:
        """Tell what the tenant would have too much of if so many were added; None: of nothing.

        They have to be stored inside: near a border whoever adds for the same tenant, in any API
        process, waits meanwhile. So those that come together do not pass it. Raises Unavailable.
        """
        known = self._of(tenant)
        near = {
            name: amount
            for name, amount in more.items()
            if amount > 0 and not self._is_far_below(known, name, amount)
        }
        if not near:
            yield None
            return
        with self.held(tenant):
            yield self.too_many(tenant, **near)

    @contextmanager
    def held(self, tenant: int) -> Iterator[None]:
        """Let nobody else add anything near a border for this tenant. Raises Unavailable."""
        with self._stored.session():
            self._stored.rows("hold", tenant=tenant)
            try:
                yield
            finally:
                self._stored.rows("let_go", tenant=tenant)

    def too_many(self, tenant: int, **more: int) -> Exceeded | None:
        """Tell the same as `adding`, to who has the tenant held."""
        known = self._of(tenant)
        for name, amount in more.items():
            if amount <= 0:
                continue
            count = self._count(tenant, name) + amount
            with self._lock:
                known.counts[name] = self._clock(), count
            if count > self._limit(known, name):
                return Exceeded(self._quota(known, name), LATER_SECONDS)
        return None

    def metered(self, tenant: int, name: str) -> Exceeded | None:
        """Tell whether the tenant has used up what is metered of this."""
        return self._used_up(self._of(tenant), (name,))

    def of(self, tenant: int) -> list[Standing]:
        """Return all quotas of a tenant as they are for it, each with what it has used."""
        known = self._of(tenant)
        used: dict[str, int | None] = {name: self._count(tenant, name) for name in self._counted}
        used |= known.used
        used[READ_SECONDS] = int(known.used.get(READ_SECONDS, 0) + self.reading.seconds(tenant))
        with self._lock:
            for name in self._rates:
                allowance = self._filled(known, name)
                used[name] = max(0, round(allowance.most - allowance.left))
        over = {name: self._used_up(known, (name,)) for name in self._metered}
        over[READ_SECONDS] = self.beyond_reading(tenant)
        return [
            Standing(self._quota(known, name), used.get(name), over.get(name))
            for name in self._quotas
        ]

    def _is_far_below(self, known: Known, name: str, amount: int) -> bool:
        """Tell whether a large border is far, by what was counted last; then count these, too."""
        most = self._limit(known, name)
        with self._lock:
            at, count = known.counts.get(name, (float("-inf"), 0))
            is_known = most >= MANY and self._clock() - at < SECONDS
            is_far = is_known and count + amount <= most // 2
            if is_far:
                known.counts[name] = at, count + amount
        return is_far

    def _count(self, tenant: int, name: str) -> int:
        statement = STATEMENTS.get(name, name)
        count: int = self._stored.rows(statement, tenant=tenant)[0][0]
        return count
