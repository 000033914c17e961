"""What tenants were given of whose streams, and what their conditions of actions took of the
processor, stored now and then; and who may have no more of it.

What delivery has not stored when it is killed is lost, in favour of who would pay.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping

from delivery.admission.resting import Resting
from delivery.admission.spending import Spending
from delivery.repeating import for_ever
from servioticy.domain.model import StreamRef
from servioticy.domain.quotas import DELIVERIES, PROCESSOR_SECONDS, Quota
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

    def __init__(
        self,
        usage: Usage,
        quotas: Quotas,
        all_quotas: Mapping[str, Quota],
        resting: Resting,
        spending: Spending,
    ) -> None:
        """`resting` hears who has used up its deliveries, `spending` who its processor time."""
        self._usage = usage
        self._quotas = quotas
        self._deliveries = all_quotas[DELIVERIES]
        self._processor = all_quotas[PROCESSOR_SECONDS]
        self._resting = resting
        self._spending = spending
        self._counted: Counter[Given] = Counter()
        self._storing: asyncio.Task[None] | None = None

    def note(self, tenant: int, provider: int, stream: StreamRef, times: int = 1) -> None:
        """Note that updates were given to a subscriber of this tenant."""
        key = Given(tenant, provider, *stream)
        if key in self._counted or len(self._counted) < MAX_COUNTED:
            self._counted[key] += times

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
        await self._settle_deliveries()
        await self._settle_spending()

    async def _settle_deliveries(self) -> None:
        counted, self._counted = self._counted, Counter()
        if not counted:
            return
        try:
            await asyncio.to_thread(self._usage.deliver, counted)
        except Unavailable as error:
            log.warning("deliveries_not_noted", extra={"why": str(error)})
            self._counted.update(counted)

    async def _settle_spending(self) -> None:
        spent = self._spending.take()
        if not spent:
            return
        try:
            await asyncio.to_thread(self._usage.spend, spent)
        except Unavailable as error:
            log.warning("spending_not_noted", extra={"why": str(error)})
            self._spending.add(spent)

    async def look(self) -> None:
        """Learn who rests. Raises Unavailable: then what was known stays."""
        used_up = self._quotas.used_up
        self._resting.change(await asyncio.to_thread(used_up, self._deliveries))
        self._spending.change(await asyncio.to_thread(used_up, self._processor))

    async def _settle_later(self) -> None:
        await asyncio.sleep(SECONDS)
        await self.settle()
        await self.look()
