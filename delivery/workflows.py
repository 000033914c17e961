"""Updates of a stream on their way into a workflow: what a durable subscription gives, as atoms.

What is stored as an atom is acknowledged then, so each update comes at least once. Where as many
atoms wait as a tenant may have nothing is read on: what comes waits in the log.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import orjson

from delivery.admission.fair_executor import FairExecutor
from delivery.feeds.deliveries import Delivery
from delivery.feeds.feed import Feed
from delivery.repeating import patiently
from servioticy.domain.documents.errors import BadDocument
from servioticy.domain.quotas import ATOM_BYTES, ATOMS, Quota
from servioticy.domain.workflows.reading import parse_workflow
from servioticy.ports.atoms import Atoms

MOST = 100
"""Updates that are stored together."""
MAX_BYTES = 262_144
"""Of an update that can be an atom; a larger one is a dead letter, which tells where it is."""
FULL_SECONDS = 1.0
THREADS = 2

log = logging.getLogger("servioticy.delivery")


class Workflows:
    """The receiver of feeds that bring atoms."""

    def __init__(
        self,
        atoms: Atoms,
        all_quotas: Mapping[str, Quota],
        given: Callable[[str], Mapping[int, int]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`given` tells by a quota's name which tenants have another one."""
        self.taken = 0
        self._atoms = atoms
        self._quotas = all_quotas
        self._given = given
        self._sleep = sleep
        self._clock = clock
        self._store = FairExecutor("workflows", THREADS)

    async def receive(self, feed: Feed) -> None:
        """Take what the feed gives until cancelled, or until the workflow is gone."""
        workflow = orjson.loads(feed.subscription.document)["destination"]
        while True:
            found = [await feed.take_patiently()]
            while len(found) < MOST and (more := feed.take_now()) is not None:
                found.append(more)
            wanted = [each for each in found if feed.gives(each.stream)]
            while wanted and not await self._stored(feed.tenant, workflow, wanted):
                await self._sleep(FULL_SECONDS)
            self.taken += len(wanted)
            for each in found:
                feed.done(each)
            await feed.settled()

    async def _stored(self, tenant: int, workflow: str, found: Sequence[Delivery]) -> bool:
        """Store them in the tenant's turn, however long the store is away; False: not now."""
        ask = partial(self._put, tenant, workflow, found)
        return await patiently(partial(self._store.run, tenant, ask), "workflows")

    def _put(self, tenant: int, workflow: str, found: Sequence[Delivery]) -> bool:
        """Put them; False where there is no room, or the workflow is just being changed."""
        in_force = self._atoms.in_force(tenant, workflow)
        if in_force is None:
            return True  # its subscription goes, too
        held, size = self._atoms.held(tenant)
        if held >= self._most(ATOMS, tenant) or size >= self._most(ATOM_BYTES, tenant):
            return False
        version, text = in_force
        now = int(self._clock() * 1000)
        try:
            read = parse_workflow(orjson.loads(text))
        except BadDocument as error:  # of another release
            log.error("workflow_not_understood", extra={"workflow": workflow, "why": str(error)})
            return False
        small = [each for each in found if len(each.update.document) <= MAX_BYTES]
        for each in found:
            if len(each.update.document) > MAX_BYTES:
                place = {**each.stream._asdict(), "lastUpdate": each.update.timestamp}
                reason = f"an update of more than {MAX_BYTES} bytes is no atom"
                self._atoms.refuse(tenant, workflow, version, orjson.dumps(place), reason, now)
        given = [(each.update.document, now) for each in small]
        return not given or self._atoms.put(tenant, workflow, version, read, given, now)

    def _most(self, name: str, tenant: int) -> int:
        return self._given(name).get(tenant, self._quotas[name].most)
