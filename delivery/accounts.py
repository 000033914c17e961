"""What tenants were given of whose streams, stored now and then; and who may be given no more.

What delivery has not stored when it is killed is lost, in favour of who would pay.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from delivery.admission.resting import Resting
from delivery.repeating import for_ever
from servioticy.domain.model import StreamRef
from servioticy.domain.quotas import Quota
from servioticy.errors import Unavailable
from servioticy.ports.quotas import Quotas
from servioticy.ports.usage import Given, Usage

SECONDS = 10.0
MAX_COUNTED = 100_000
"""Pairs of tenant and stream that are kept while the store is away; further ones are not
counted."""

log = logging.getLogger("servioticy.delivery")


class Accounts:
    """Counts in the loop's thread, and asks the store in another."""

    def __init__(self, usage: Usage, quotas: Quotas, quota: Quota, resting: Resting) -> None:
        """`quota` is that of deliveries, `resting` hears who has used it up."""
        self._usage = usage
        self._quotas = quotas
        self._quota = quota
        self._resting = resting
        self._counted: Counter[Given] = Counter()
        self._storing: asyncio.Task[None] | None = None

    def note(self, tenant: int, provider: int, stream: StreamRef) -> None:
        """Note that an update was given to a subscriber of this tenant."""
        key = Given(tenant, provider, *stream)
        if key in self._counted or len(self._counted) < MAX_COUNTED:
            self._counted[key] += 1

    async def start(self) -> None:
        """Learn who rests, before anybody is given anything; then go on in the running loop."""
        try:
            await self.look()
        except Unavailable as error:
            log.warning("accounts_wait", extra={"why": str(error)})
        self._storing = asyncio.create_task(for_ever(self._settle_later, "accounts"))

    async def stop(self) -> None:
        """Store what is left."""
        if self._storing is not None:
            self._storing.cancel()
            await self.settle()

    async def settle(self) -> None:
        """Store what has been counted; where the store is away it is counted on."""
        counted, self._counted = self._counted, Counter()
        if not counted:
            return
        try:
            await asyncio.to_thread(self._usage.deliver, counted)
        except Unavailable as error:
            log.warning("deliveries_not_noted", extra={"why": str(error)})
            self._counted.update(counted)

    async def look(self) -> None:
        """Learn who rests. Raises Unavailable: then what was known stays."""
        found = await asyncio.to_thread(self._quotas.deliveries_used_up, self._quota)
        self._resting.change(found)

    async def _settle_later(self) -> None:
        await asyncio.sleep(SECONDS)
        await self.settle()
        await self.look()
