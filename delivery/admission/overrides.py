"""How many sockets operators let tenants have, where that is not what every tenant has."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from delivery.admission.quotas import Quota
from servioticy.errors import Unavailable

SECONDS = 5.0
"""So old may be what is known."""
SOCKETS = "sockets"

log = logging.getLogger("servioticy.delivery")


class Quotas(Protocol):
    """Knows what operators have said."""

    def of_all(self, quota: str) -> dict[int, int]:
        """Return of those tenants that have another one what it is. Raises Unavailable."""


class Overrides:
    """Keeps the places of a quota in step with what operators say."""

    def __init__(self, quotas: Quotas, admitted: Quota) -> None:
        self._quotas = quotas
        self._admitted = admitted
        self._following: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow from now on, in the running loop."""
        self._following = asyncio.create_task(self._follow())

    def stop(self) -> None:
        """Follow no more."""
        if self._following is not None:
            self._following.cancel()

    async def look(self) -> None:
        """Ask once; where the store is away what was known stays."""
        try:
            found = await asyncio.to_thread(self._quotas.of_all, SOCKETS)
        except Unavailable as error:
            log.warning("quotas_not_read", extra={"why": str(error)})
            return
        self._admitted.others = found

    async def _follow(self) -> None:
        while True:
            try:
                await self.look()
            except Exception:  # a bug of ours lets everybody have what they had
                log.exception("quotas_not_read")
            await asyncio.sleep(SECONDS)
