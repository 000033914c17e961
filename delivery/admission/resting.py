"""Tenants whose quota of deliveries is used up: nothing is given to them until it is not.

What is theirs waits in the log. Whoever is connected for updates is told so and ended when the
next one comes for it, and whoever asks for them is refused; those whom we call pause. So nobody
waits for an hour at a socket that looks as if its devices were silent, nothing is kept for it,
and what has nowhere else to go from, a subscription that we deliver, goes on by itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

from delivery.admission.refusals import Refusal, beyond
from servioticy.domain.quotas import Exceeded

log = logging.getLogger("servioticy.delivery")


class TenantRests(Exception):
    """Nothing may be given to this tenant now."""


class Resting:
    """Knows who they are. All methods belong to the event loop's thread."""

    def __init__(self) -> None:
        self.ended: Callable[[Collection[int]], None] = _unheard
        """Hears of those that may have more again."""
        self._exceeded: Mapping[int, Exceeded] = {}
        self._over: dict[int, asyncio.Event] = {}

    @property
    def count(self) -> int:
        """Return how many there are; may be asked from any thread."""
        return len(self._exceeded)

    def has(self, tenant: int) -> bool:
        """Return whether nothing may be given to this tenant now."""
        return tenant in self._exceeded

    def check(self, tenant: int) -> None:
        """Raises TenantRests where nothing may be given to this tenant now."""
        if self.has(tenant):
            raise TenantRests

    def refusal(self, tenant: int) -> Refusal | None:
        """Return what whoever asks for its updates is told now; None: it may have them."""
        exceeded = self._exceeded.get(tenant)
        return None if exceeded is None else beyond(exceeded)

    def change(self, exceeded: Mapping[int, Exceeded]) -> None:
        """Let these rest from now on, and no others."""
        begun, over = exceeded.keys() - self._exceeded, self._exceeded.keys() - exceeded
        for tenant in begun:
            log.info("deliveries_used_up", extra={"tenant": tenant})
        self._exceeded = exceeded
        for tenant in over & self._over.keys():
            self._over.pop(tenant).set()
        if over:
            self.ended(over)

    async def over(self, tenant: int) -> None:
        """Return when something may be given to this tenant: at once, where it does not rest."""
        while self.has(tenant):
            await self._over.setdefault(tenant, asyncio.Event()).wait()


def _unheard(_tenants: Collection[int]) -> None:
    """Nobody asks who goes on."""
