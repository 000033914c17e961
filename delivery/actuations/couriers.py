"""Actuations as HTTP requests, for Service Objects whose documents name somebody to call.

One after the other for each, whoever is connected beside that. What cannot be taken is tried
again until its time is over; so a dead receiver costs a task that sleeps, and only while
something waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import Protocol

from delivery.actuations.together import Ask
from delivery.actuations.ways import message
from delivery.callbacks.http_client import AttemptResult
from delivery.callbacks.receiver import REFUSALS, is_refusal, pause
from delivery.callbacks.requests import CallbackForm, Outgoing
from delivery.repeating import for_ever
from servioticy.domain.actuations import State
from servioticy.domain.feed_slots import of_tenant
from servioticy.domain.model import ServiceObjectKey
from servioticy.errors import Unavailable
from servioticy.ports.actuations import Actuation, Actuations
from servioticy.ports.cursors import Claim

EVENT_TYPE = "com.servioticy.actuation"
RETRY_SECONDS = 1.0
LOOKS = 10
"""So often as long it is between two looks for all that waits: what was begun by another process,
for one."""

log = logging.getLogger("servioticy.delivery")


class Attempts(Protocol):
    """Calls receivers: `Callbacks` does."""

    async def attempt(self, tenant: int, form: CallbackForm, sent: Outgoing) -> AttemptResult:
        """Call the receiver once, when the tenant has a place."""


class Couriers:
    """Calls with what waits. All methods belong to the event loop's thread."""

    def __init__(
        self,
        store: Actuations,
        callbacks: Attempts,
        ask: Ask,
        claim: Callable[[], Claim],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`claim` tells of which tenants this process is the one that calls."""
        self._store = store
        self._callbacks = callbacks
        self._ask = ask
        self._claim = claim
        self._clock = clock
        self._sleep = sleep
        self._running: dict[ServiceObjectKey, asyncio.Task[None]] = {}
        self._again: set[ServiceObjectKey] = set()
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look for what waits from now on."""
        self._looking = asyncio.create_task(for_ever(self._look_and_rest, "actuations"))

    async def stop(self) -> None:
        """Call nobody any more; what was on its way goes again."""
        tasks = [*self._running.values(), *([self._looking] if self._looking else [])]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self, keys: Iterable[ServiceObjectKey]) -> None:
        """Call for these: something waits."""
        for key in filter(self._is_ours, keys):
            self._again.add(key)
            if key not in self._running:
                self._running[key] = asyncio.create_task(self._run(key))

    async def look(self) -> None:
        """Call for all for which something waits. Raises Unavailable."""
        if self._claim().slots:
            self.wake(await self._ask(0, partial(self._store.calling, self._now())))

    def _is_ours(self, key: ServiceObjectKey) -> bool:
        return self._claim().has(of_tenant(key.tenant))

    async def _look_and_rest(self) -> None:
        before = self._claim().slots
        await self.look()
        for _ in range(LOOKS):
            await asyncio.sleep(RETRY_SECONDS)
            if self._claim().slots != before:
                return  # others have called for these until now

    async def _run(self, key: ServiceObjectKey) -> None:
        try:
            while key in self._again and self._is_ours(key):
                self._again.discard(key)
                try:
                    while await self._next(key):
                        pass
                except Unavailable as error:
                    log.warning("actuations_wait", extra={"why": str(error)})
                    self._again.add(key)
                    await self._sleep(RETRY_SECONDS)
        except Exception:
            log.exception("courier_failed", extra={"service_object": key.id})
        finally:
            self._again.discard(key)
            del self._running[key]

    async def _next(self, key: ServiceObjectKey) -> bool:
        """Deliver the first one that waits; False where there is none, or nobody to call."""
        form, first = await self._form(key), await self._first(key)
        if form is None or first is None:
            return False
        await self._moved(key, first, State.SENT)
        await self._deliver(key, first, form)
        return self._is_ours(key)

    async def _form(self, key: ServiceObjectKey) -> CallbackForm | None:
        """Return how it is called, as its document says now; None: it is not."""
        called = await self._ask(key.tenant, partial(self._store.callback, key))
        return called and CallbackForm.of(key.id, called.callback, called.secrets)

    async def _first(self, key: ServiceObjectKey) -> Actuation | None:
        waiting = partial(self._store.waiting, key.tenant, [key.id], 1, self._now())
        found = await self._ask(key.tenant, waiting)
        return next(iter(found.get(key.id, ())), None)

    async def _deliver(
        self, key: ServiceObjectKey, actuation: Actuation, form: CallbackForm
    ) -> None:
        """Call until it is taken, refused for good, or need not be delivered any more."""
        sent = Outgoing(
            actuation.id, message(actuation), f"/{key.id}/actuations", EVENT_TYPE, actuation.id
        )
        refusals = attempts = 0
        while True:
            answer = await self._callbacks.attempt(key.tenant, form, sent)
            if 200 <= answer.status < 300:
                return await self._moved(key, actuation, State.DELIVERED)
            attempts += 1
            refusals += is_refusal(answer)
            if refusals >= REFUSALS or answer.status == HTTPStatus.GONE:
                reason = f"{answer.status} {answer.reason}".strip()
                failed = partial(self._store.failed, key, actuation.id, reason, self._now())
                return await self._ask(key.tenant, failed)
            left = actuation.expires_ms / 1000 - self._clock()
            await self._sleep(max(0.0, min(pause(attempts, answer), left)))
            if not self._is_ours(key):
                return None  # whoever has the tenant now calls with it
            if await self._first(key) != actuation:
                return None  # somebody else has delivered it, or its time is over
            now = await self._form(key)
            if now is None:
                return None
            form = now  # it may have moved, or have another secret

    async def _moved(self, key: ServiceObjectKey, actuation: Actuation, state: State) -> None:
        moved = partial(self._store.moved, key.tenant, [actuation.id], state, self._now())
        await self._ask(key.tenant, moved)

    def _now(self) -> int:
        return int(self._clock() * 1000)
