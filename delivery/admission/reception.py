"""Whoever wants to watch is received here: asked about, counted, and let in or refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import TypeVar

from delivery.admission.capacity import Capacity
from delivery.admission.fair_executor import FairExecutor
from delivery.admission.owner_semaphore import OwnerSemaphore, Place, SemaphoreFull
from delivery.admission.pending import Caller, PendingConnections
from delivery.admission.refusals import RETRY_SECONDS, Refusal, Refused, beyond
from delivery.admission.requests import (
    Admission,
    Identity,
    WatchRequest,
    admit,
    admit_device,
    identify,
    read_request,
)
from delivery.admission.resting import Resting
from delivery.admission.sources import SourceAdmission, admit_to_source
from delivery.admission.stays import Stays
from servioticy.domain.known_tokens import KnownTokens
from servioticy.domain.model import ServiceObjectKey
from servioticy.domain.quotas import Exceeded
from servioticy.errors import Stranger, Unavailable
from servioticy.ports.addresses import Addresses
from servioticy.ports.cursors import Source

CATALOG_THREADS = 4
SOURCES, SOURCES_EACH = 5_000, 100

A = TypeVar("A", Admission, Identity, SourceAdmission, ServiceObjectKey)


class Reception:
    """Decides who may watch what, within the capacity of the process, for all transports."""

    def __init__(self, catalog: Addresses, capacity: Capacity, resting: Resting) -> None:
        self._catalog = catalog
        self._resting = resting
        self._sockets = capacity.sockets
        self._live = capacity.live
        self._tokens = KnownTokens()
        self.is_open = False
        """Whether anybody may be let in: only while what is emitted is being read.

        Else a client would miss what is emitted between the end of the history and that moment.
        """
        self.pending = PendingConnections(capacity.pending)
        self.admitted = OwnerSemaphore(capacity.connections, capacity.sockets.most)
        """One place for each connection that was let in, by tenant."""
        self.sources = OwnerSemaphore(SOURCES, SOURCES_EACH)
        """One place for each Service Object or group that is watched as a whole, by tenant."""
        self.subscriptions = OwnerSemaphore(capacity.live_subscriptions, capacity.live.most)
        """One place for each subscription of a socket for many, by tenant."""
        self.catalog_calls = FairExecutor(
            "catalog", CATALOG_THREADS, capacity.asking, capacity.asking_each
        )
        self.stays = Stays(catalog)

    async def decide(self, caller: Caller, target: str, authorization: str) -> Admission | Refusal:
        """Decide on a request for `target` (path and query, as sent).

        Whoever is admitted has one of its tenant's places until the connection is lost.
        """
        request = read_request(target, authorization)
        if isinstance(request, Refusal):
            return request
        asked = partial(admit, request, self._catalog, self.stays.changes)
        return self._placed(caller, await self._watching(caller.address, request.token, asked))

    async def examine(self, request: WatchRequest) -> Admission | Refusal:
        """Decide on a request of a caller that has its place already."""
        asked = partial(admit, request, self._catalog, self.stays.changes)
        return await self._watching("", request.token, asked)

    async def examine_source(self, source: Source, token: str) -> SourceAdmission | Refusal:
        """Decide on many streams at once, for a caller that has its place already."""
        asked = partial(admit_to_source, source, token, self._catalog, self.stays.changes)
        return await self._watching("", token, asked)

    async def examine_device(self, token: str, service_object: str) -> ServiceObjectKey | Refusal:
        """Decide whether a caller that has its place may speak for this device."""
        asked = partial(admit_device, token, service_object, self._catalog)
        return await self._answered("", token, asked)

    async def identify(self, caller: Caller, token: str) -> Identity | Refusal:
        """Find out who asks; whoever is known has a place, too."""
        asked = partial(identify, token, self._catalog, self.stays.changes)
        return self._placed(caller, await self._answered(caller.address, token, asked))

    async def recognise(self, caller: Caller, token: str) -> Identity | Refusal:
        """Find out who has this token, and take no place for it."""
        asked = partial(identify, token, self._catalog, self.stays.changes)
        return await self._answered(caller.address, token, asked)

    async def whose(self, token: str) -> Identity | Refusal:
        """Find out whose a token is that no client has shown."""
        return await self._answered("", token, partial(identify, token, self._catalog))

    def subscription(self, tenant: int) -> Place:
        """Take a place for one subscription of a socket for many. Raises Refused."""
        try:
            return self.subscriptions.place(tenant)
        except SemaphoreFull as full:
            quota = self._live._replace(most=full.most)
            refusal = beyond(Exceeded(quota, RETRY_SECONDS)) if full.own else _full(full)
            raise Refused(refusal) from None

    async def _watching(
        self, address: str, token: str, ask: Callable[[], A | Refusal]
    ) -> A | Refusal:
        """Answer somebody who wants updates: not while his tenant's quota of them is used up."""
        answer = await self._answered(address, token, ask)
        if isinstance(answer, Refusal):
            return answer
        return self._resting.refusal(answer.tenant) or answer

    def _placed(self, caller: Caller, answer: A | Refusal) -> A | Refusal:
        """Give whoever is let in a place, if there is one."""
        if isinstance(answer, Refusal):
            return answer
        try:
            self.take_place(caller, answer.tenant)
        except Refused as none:
            return none.refusal
        return answer

    def take_place(self, caller: Caller, tenant: int) -> None:
        """Count a connection as the tenant's until it is lost. Raises Refused."""
        try:
            self.admitted.acquire(tenant)
        except SemaphoreFull as full:
            raise Refused(self._no_socket(full)) from None
        caller.when_lost(partial(self.admitted.release, tenant))

    def _no_socket(self, full: SemaphoreFull) -> Refusal:
        if not full.own:
            return _full(full)
        return beyond(Exceeded(self._sockets._replace(most=full.most), RETRY_SECONDS))

    async def _answered(
        self, address: str, token: str, ask: Callable[[], A | Refusal]
    ) -> A | Refusal:
        if not self.is_open:
            return Refusal(503, "Delivery has only just started; try again", RETRY_SECONDS)
        try:
            answer = await self.catalog_calls.run(self._tokens.share(token, address), ask)
        except SemaphoreFull as full:
            return _full(full)
        except Unavailable as away:
            # What does not answer, without the addresses and reasons that follow.
            return Refusal(503, f"{str(away).partition(':')[0]}; try again", RETRY_SECONDS)
        except Stranger as stranger:
            answer = Refusal(403, str(stranger))
        if not isinstance(answer, Refusal):
            self._tokens.good(token, answer.tenant)
        elif answer.status == HTTPStatus.FORBIDDEN:
            self._tokens.refused(token)
        return answer


def _full(full: SemaphoreFull) -> Refusal:
    return Refusal(429 if full.own else 503, "Too many at once; try again", RETRY_SECONDS)
