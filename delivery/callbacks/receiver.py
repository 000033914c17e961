"""Delivers a feed by HTTP: one update after the other, each until it is taken.

A receiver that cannot be reached, or says that it is not well, holds up its own feed: order is
kept, and what waits costs nothing, as it waits in the log. An update that it refuses, while it
is well, is given up after a few attempts and kept as a dead delivery.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import TypeVar
from weakref import WeakValueDictionary

from delivery.admission.fair_executor import FairExecutor
from delivery.admission.fair_places import FairPlaces
from delivery.callbacks.http_client import AttemptResult, HttpClient
from delivery.callbacks.requests import CallbackForm, Outgoing, Request, outgoing
from delivery.evaluating.evaluator import Evaluator
from delivery.feeds.deliveries import Delivery
from delivery.feeds.feed import Feed
from delivery.repeating import patiently
from servioticy.domain.traces import MAKING
from servioticy.errors import Unavailable
from servioticy.ports.dead_deliveries import DeadDeliveries, DeadDelivery, Trouble

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 300.0
"""Between two attempts; each pause is about twice as long as the one before."""

REFUSALS = 5
"""So often an update may be refused before it is given up."""

GIVE_UP_SECONDS = 24 * 3600.0
"""So long an update may hold up those behind it."""

STOP_SECONDS = 5 * 24 * 3600.0
"""A receiver that has taken nothing for so long is not called any more."""

MAX_OF_A_TENANT = 50
"""Requests of one tenant that may be under way at once."""

MAX_TO_A_HOST = 10
"""Of these, to one host; another tenant's to the same host count for themselves."""

STORE_THREADS = 4
"""That note what came of callbacks."""

NOT_NOW = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)
"""Of the refusals, those that are about the moment and not about the update."""

T = TypeVar("T")

log = logging.getLogger("servioticy.delivery")


class Stopped(Exception):
    """The receiver is not called any more."""


class Callbacks:
    """The receiver of feeds whose subscriptions name an address to call."""

    def __init__(
        self,
        client: HttpClient,
        dead: DeadDeliveries,
        evaluator: Evaluator,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.delivered = 0
        self.failed = 0
        """Attempts that came to nothing."""
        self._client = client
        self._evaluator = evaluator
        self.dead = dead
        self.sleep = sleep
        self.clock = clock
        self._places = FairPlaces(client.connections, MAX_OF_A_TENANT)
        self._store = FairExecutor("callbacks", STORE_THREADS)
        self._hosts: WeakValueDictionary[tuple[int, str], asyncio.Semaphore] = (
            WeakValueDictionary()
        )

    async def receive(self, feed: Feed) -> None:
        """Deliver what the feed gives until cancelled, or until the receiver wants no more."""
        about = feed.subscription
        form = await self.form(feed.tenant, about.id, about.document)
        try:
            await _Courier(self, feed, form).run()
        except Stopped:
            log.warning("callback_stopped", extra={"subscription": feed.subscription.id})

    async def form(self, tenant: int, subscription: str, document: bytes) -> CallbackForm:
        """Return how a stored subscription wants to be called."""
        read = partial(CallbackForm.read, subscription, document)
        return await self._evaluator.aside(tenant, read)

    async def outgoing(self, tenant: int, delivery: Delivery) -> Outgoing:
        """Return an update as it goes out."""
        return await self._evaluator.aside(tenant, partial(outgoing, delivery))

    async def attempt(self, tenant: int, form: CallbackForm, sent: Outgoing) -> AttemptResult:
        """Call the receiver once, when the tenant has a place."""
        sent = sent._replace(trace=MAKING.onward(sent.trace)) if sent.trace else sent
        try:
            request = await self._request(tenant, form, sent)
        except ValueError as error:
            return AttemptResult(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except Unavailable as error:
            return AttemptResult(0, str(error))
        host = tenant, request.url.partition("://")[2].partition("/")[0].lower()
        # The host first: who waits for a host takes no place of the tenant's.
        place = self._hosts.setdefault(host, asyncio.Semaphore(MAX_TO_A_HOST))
        async with place, self._places.place(tenant):
            return await self._client.call(request, tenant)

    async def stored(self, tenant: int, ask: Callable[[], T]) -> T:
        """Ask the store until it answers, in the tenant's turn."""
        return await patiently(partial(self._store.run, tenant, ask), "callbacks")

    async def _request(self, tenant: int, form: CallbackForm, sent: Outgoing) -> Request:
        """Make the request where it holds nobody up: a template takes what its tenant likes."""
        make = partial(form.request, sent, int(self.clock()))
        do = self._evaluator.apart if form.is_template else self._evaluator.aside
        return await do(tenant, make)


class _Courier:
    """Delivers one feed."""

    def __init__(self, callbacks: Callbacks, feed: Feed, form: CallbackForm) -> None:
        self._callbacks = callbacks
        self._feed = feed
        self._form = form
        self._whose = feed.tenant, feed.subscription.id
        since = feed.subscription.failing_since_ms
        self._failing_since = None if since is None else since / 1000

    async def run(self) -> None:
        """Deliver until cancelled. Raises Stopped."""
        await self._redrive()
        while True:
            delivery = await self._feed.take_patiently()
            await self._deliver(delivery)
            self._feed.done(delivery)
            # What is under way when we are killed comes twice; so nothing else may be.
            await self._feed.settled()

    async def _redrive(self) -> None:
        """Deliver the dead ones first that are to be delivered once more."""
        dead = self._callbacks.dead
        while found := await self._stored(partial(dead.to_redrive, *self._whose)):
            for each in found:
                await self._feed.rested()
                if await self._deliver(Delivery(each.stream, each.update, None)):
                    await self._stored(partial(dead.revived, *self._whose, each.id))

    async def _deliver(self, delivery: Delivery) -> bool:
        """Attempt until it is taken (True), or given up. Raises Stopped."""
        callbacks = self._callbacks
        began, refusals, attempts = callbacks.clock(), 0, 0
        sent = await callbacks.outgoing(self._feed.tenant, delivery)
        while self._feed.gives(delivery.stream):
            answer = await callbacks.attempt(self._feed.tenant, self._form, sent)
            if 200 <= answer.status < 300:
                callbacks.delivered += 1
                await self._note_well()
                return True
            callbacks.failed += 1
            attempts += 1
            refusals += is_refusal(answer)
            await self._note_failure(answer, attempts)
            if refusals >= REFUSALS or callbacks.clock() - began > GIVE_UP_SECONDS:
                await self._bury(delivery, answer)
                return False
            await callbacks.sleep(pause(attempts, answer))
        return True  # nobody may have it any more

    async def _stored(self, ask: Callable[[], T]) -> T:
        return await self._callbacks.stored(self._feed.tenant, ask)

    async def _note_well(self) -> None:
        if self._failing_since is not None:
            self._failing_since = None
            await self._stored(partial(self._callbacks.dead.trouble, *self._whose, None))

    async def _note_failure(self, answer: AttemptResult, attempts: int) -> None:
        """Tell it to whoever asks. Raises Stopped where it has to be the last one."""
        now = self._callbacks.clock()
        if self._failing_since is None:
            self._failing_since = now
        since = self._failing_since
        trouble = Trouble(int(since * 1000), attempts, answer.status, answer.reason)
        stop = answer.status == HTTPStatus.GONE or now - since > STOP_SECONDS
        note = partial(self._callbacks.dead.trouble, *self._whose, trouble, stop=stop)
        await self._stored(note)
        if stop:
            raise Stopped

    async def _bury(self, delivery: Delivery, answer: AttemptResult) -> None:
        reason = f"{answer.status or 'no answer'} {answer.reason}".strip()
        dead = DeadDelivery(delivery.id, delivery.stream, delivery.update)
        now = int(self._callbacks.clock() * 1000)
        await self._stored(partial(self._callbacks.dead.bury, *self._whose, dead, reason, now))


def is_refusal(answer: AttemptResult) -> bool:
    """Tell whether a receiver that is well does not want what it was sent."""
    return 400 <= answer.status < 500 and answer.status not in NOT_NOW


def pause(attempts: int, answer: AttemptResult) -> float:
    """Seconds until the next attempt: twice as long each time, and never two of them at once."""
    if answer.retry_seconds is not None:
        return max(answer.retry_seconds, FIRST_PAUSE_SECONDS)
    longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(attempts - 1, 20))
    return longest * (0.5 + random.random() / 2)  # noqa: S311
