"""How many sockets, and subscriptions of them, operators let tenants have, where that is not what
every tenant has."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from delivery.admission.owner_semaphore import OwnerSemaphore
from delivery.repeating import for_ever
from servioticy.ports.quotas import Quotas

SECONDS = 5.0
"""So old may be what is known."""


class Overrides:
    """Keeps the places of tenants in step with what operators say."""

    def __init__(self, quotas: Quotas, places: Mapping[str, OwnerSemaphore]) -> None:
        """`places` are by the names of their quotas."""
        self._quotas = quotas
        self._places = places
        self._following: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow from now on, in the running loop."""
        self._following = asyncio.create_task(for_ever(self._look_and_rest, "quotas"))

    async def stop(self) -> None:
        """Follow no more."""
        if self._following is not None:
            self._following.cancel()

    async def look(self) -> None:
        """Ask once. Raises Unavailable: then what was known stays."""
        for name, places in self._places.items():
            places.others = await asyncio.to_thread(self._quotas.of_all, name)

    async def _look_and_rest(self) -> None:
        await self.look()
        await asyncio.sleep(SECONDS)
