"""Whoever wants to watch is received here: asked about, counted, and let in or refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import TypeVar

from delivery.admission.capacity import Capacity
from delivery.admission.fair_executor import FairExecutor
from delivery.admission.pending import Caller, PendingConnections
from delivery.admission.quotas import Quota, QuotaExceeded
from delivery.admission.requests import (
    Admission,
    Refusal,
    WatchRequest,
    admit,
    read_request,
)
from servioticy.domain.known_tokens import KnownTokens
from servioticy.errors import Unavailable
from servioticy.ports.addresses import Address, Addresses

CATALOG_THREADS = 4
RETRY_SECONDS = 5

T = TypeVar("T")


class Reception:
    """Decides who may watch what, within the capacity of the process, for all transports."""

    def __init__(self, catalog: Addresses, capacity: Capacity) -> None:
        self._catalog = catalog
        self._tokens = KnownTokens()
        self.is_open = False
        """Whether anybody may be let in: only while what is emitted is being read.

        Else a client would miss what is emitted between the end of the history and that moment.
        """
        self.pending = PendingConnections(capacity.pending)
        self.admitted = Quota(capacity.connections, capacity.connections_per_tenant)
        """One place for each connection that was let in, by tenant."""
        self.catalog_calls = FairExecutor(
            "catalog", CATALOG_THREADS, capacity.asking, capacity.asking_each
        )

    async def decide(self, caller: Caller, target: str, authorization: str) -> Admission | Refusal:
        """Decide on a request for `target` (path and query, as sent).

        Whoever is admitted has a place of its tenant's quota until the connection is lost.
        """
        request = read_request(target, authorization)
        if isinstance(request, Refusal):
            return request
        if not self.is_open:
            return Refusal(503, "Delivery has only just started; try again", RETRY_SECONDS)
        try:
            return await self._admitted(caller, request)
        except QuotaExceeded as full:
            return Refusal(429 if full.own else 503, "Too many at once; try again", RETRY_SECONDS)
        except Unavailable:
            return Refusal(503, "The store does not answer; try again", RETRY_SECONDS)

    async def identify(self, caller: Caller, token: str) -> Address | None:
        """Return who has this token, or None for nobody. Raises QuotaExceeded, Unavailable."""
        return await self._ask(caller, token, partial(self._catalog.address, token, None, None))

    async def permit(self, caller: Caller, request: WatchRequest) -> Admission | Refusal:
        """Decide on one more stream for a connection that has its place already.

        Raises QuotaExceeded, Unavailable.
        """
        return await self._ask(caller, request.token, partial(admit, request, self._catalog))

    async def _ask(self, caller: Caller, token: str, ask: Callable[[], T]) -> T:
        return await self.catalog_calls.run(self._tokens.share(token, caller.address), ask)

    async def _admitted(self, caller: Caller, request: WatchRequest) -> Admission | Refusal:
        answer = await self.permit(caller, request)
        if isinstance(answer, Admission):
            self._tokens.good(request.token, answer.tenant)
            self.admitted.acquire(answer.tenant)
            caller.when_lost(partial(self.admitted.release, answer.tenant))
        elif answer.status == HTTPStatus.FORBIDDEN:
            self._tokens.refused(request.token)
        return answer
