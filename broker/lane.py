"""Updates that clients publish, on their way into the log (`ingest/`): by tenants in turn.

What comes while the threads are busy goes together, one client's part of each tenant in each
round, so one question to the store and one wait for the log are for many. Nothing of a tenant is
read in the loop. A part with something large in it, or for a document that has to be read, goes
to threads that may wait, a place there by tenants in turn. What waits here is counted with what
is kept for its client.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, Protocol

from broker.outcomes import Outcome, of_update
from delivery.admission.fair_places import FairPlaces
from ingest import updates
from ingest.ingest import Ingest
from ingest.updates import Fault, Sent, Unread

THREADS = 2
"""While one waits for the log the other reads what has come meanwhile."""
MAX_TOGETHER, MAX_TOGETHER_BYTES = 1_000, 1024 * 1024
"""Updates, and bytes of them, that go together, and one client's part."""
PATIENT, PATIENT_EACH = 4, 2
"""Threads that wait for documents to be read, and of them those of one tenant; as many others for
the turns of what is large."""

log = logging.getLogger("servioticy.delivery")


class Takes(Protocol):
    """Takes updates into the log: `Lane` does."""

    async def take(self, tenant: int, sent: Sent) -> list[Outcome]:
        """Return what became of each of a client's updates. Raises nothing."""


class _Waiting(NamedTuple):
    sent: Sent
    done: asyncio.Future[list[updates.Outcome]]


class _Patience:
    """Threads that may wait, and places there."""

    def __init__(self, name: str) -> None:
        self.places = FairPlaces(PATIENT, PATIENT_EACH)
        self.threads = ThreadPoolExecutor(PATIENT, name)


class Lane:
    """Keeps to the protocol `Takes`. All methods belong to the event loop's thread."""

    def __init__(self, ingest: Ingest) -> None:
        self.taken = 0
        """Updates that came into the log."""
        self._ingest = ingest
        self._free = THREADS
        self._threads = ThreadPoolExecutor(THREADS, "ingest")
        self._waiting: OrderedDict[int, deque[_Waiting]] = OrderedDict()
        self._reading = _Patience("documents")
        self._large = _Patience("large")

    async def take(self, tenant: int, sent: Sent) -> list[Outcome]:
        """Return what became of each of a client's updates. Raises nothing."""
        if sent.is_large:
            found = await self._patiently(self._large, tenant, sent)
        else:
            found = await self._soon_or_read(tenant, sent)
        self.taken += sum(isinstance(each, updates.Taken) for each in found)
        return [of_update(each) for each in found]

    async def _soon_or_read(self, tenant: int, sent: Sent) -> list[updates.Outcome]:
        found = await self._soon(tenant, sent)
        unread = [place for place, each in enumerate(found) if isinstance(each, Unread)]
        if unread:
            rest = sent._replace(updates=[sent.updates[place] for place in unread])
            later = await self._patiently(self._reading, tenant, rest)
            for place, each in zip(unread, later, strict=True):
                found[place] = each
        return found

    async def _patiently(
        self, patience: _Patience, tenant: int, sent: Sent
    ) -> list[updates.Outcome]:
        async with patience.places.place(tenant):
            take = partial(self._take, [sent], patient=True)
            (found,) = await asyncio.get_running_loop().run_in_executor(patience.threads, take)
        return found

    async def stop(self) -> None:
        """Let the threads end after what they have begun."""
        for each in (self._threads, self._reading.threads, self._large.threads):
            each.shutdown(wait=False, cancel_futures=True)

    def _soon(self, tenant: int, sent: Sent) -> asyncio.Future[list[updates.Outcome]]:
        waiting = _Waiting(sent, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(tenant, deque()).append(waiting)
        self._go_on()
        return waiting.done

    def _go_on(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            together = self._together()
            take = partial(self._take, [each.sent for each in together])
            job = asyncio.get_running_loop().run_in_executor(self._threads, take)
            job.add_done_callback(partial(self._end, together))

    def _together(self) -> list[_Waiting]:
        """Return what goes next: one part of each tenant in turn, while there is room."""
        found: list[_Waiting] = []
        number = size = 0
        while self._waiting and number < MAX_TOGETHER and size < MAX_TOGETHER_BYTES:
            tenant, parts = self._waiting.popitem(last=False)
            found.append(parts.popleft())
            if parts:
                self._waiting[tenant] = parts  # behind all the others
            number += len(found[-1].sent.updates)
            size += sum(len(each.body) for each in found[-1].sent.updates)
        return found

    def _take(self, sent: Sequence[Sent], *, patient: bool = False) -> list[list[updates.Outcome]]:
        """Take them, in a thread; a bug of ours leaves nobody without an answer."""
        try:
            return self._ingest.take(sent, patient=patient)
        except Exception as error:
            log.exception("updates_failed")
            return [[Fault(repr(error))] * len(each.updates) for each in sent]

    def _end(
        self, together: Sequence[_Waiting], job: asyncio.Future[list[list[updates.Outcome]]]
    ) -> None:
        self._free += 1
        if not job.cancelled():  # we are stopping
            for each, found in zip(together, job.result(), strict=True):
                if not each.done.done():
                    each.done.set_result(found)
        self._go_on()
