"""Delivers the feeds of `pubsub` and `service` subscriptions to connected clients.

What is not acknowledged waits where all feeds wait: in the log. So nothing is stored for a
client that is away, and it gets what it missed when it comes again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from broker.client import Publication
from broker.exchange import Exchange
from broker.topics import part, plain
from delivery.feeds.deliveries import Delivery
from delivery.feeds.feed import Feed
from servioticy.domain.message_topics import topic_of
from servioticy.domain.model import StreamRef

WINDOW = 64
"""Messages of one subscription on their way at once."""
WINDOW_BYTES = 256 * 1024


@dataclass(slots=True)
class _Given:
    delivery: Delivery
    taken: asyncio.Future[bool]


class TopicReceiver:
    """The receiver of feeds whose subscriptions name a topic."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def receive(self, feed: Feed) -> None:
        """Deliver what the feed gives, in order, until cancelled."""
        again: deque[Delivery] = deque()
        while True:
            again = await _Round(self._exchange, feed, again).run()


class _Round:
    """Delivers until nobody is left who has got what was given: then all of that comes again."""

    def __init__(self, exchange: Exchange, feed: Feed, again: deque[Delivery]) -> None:
        self._exchange = exchange
        self._feed = feed
        self._again = again
        self._given: deque[_Given] = deque()
        self._has_moved = asyncio.Event()
        self._is_broken = False
        """Something was not taken: nothing that follows it may go before it."""

    async def run(self) -> deque[Delivery]:
        """Return what has to come again, in its order."""
        giving = asyncio.create_task(self._give())
        try:
            while True:
                something = asyncio.create_task(self._until(lambda: self._given))
                await self._unless_broken(giving, something)
                taken = self._given[0].taken
                await self._unless_broken(giving, taken)
                if not taken.result():
                    break
                self._feed.done(self._given.popleft().delivery)
                self._has_moved.set()
        finally:
            giving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await giving
        return deque([*(each.delivery for each in self._given), *self._again])

    async def _unless_broken(self, giving: asyncio.Task[None], event: asyncio.Future[Any]) -> None:
        """Wait for the event; raises what the giving raises."""
        await asyncio.wait((giving, event), return_when=asyncio.FIRST_COMPLETED)
        if giving.done():
            giving.result()

    async def _give(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._until(lambda: not self._is_full())
            delivery = await self._next()
            if not self._feed.gives(delivery.stream):
                continue
            given = _Given(delivery, loop.create_future())
            self._given.append(given)
            self._has_moved.set()
            message = publication(self._feed, delivery)
            taken = partial(self._taken, given)
            is_wanted = partial(self._is_wanted, delivery.stream)
            await self._exchange.hand_over(message, taken, is_wanted)
            if not self._feed.gives(delivery.stream):
                taken(True)  # nobody may have it any more

    async def _next(self) -> Delivery:
        if not self._again:
            return await self._feed.take_patiently()
        await self._feed.rested()
        return self._again.popleft()

    def _is_wanted(self, stream: StreamRef) -> bool:
        return not self._is_broken and self._feed.gives(stream)

    def _taken(self, given: _Given, is_taken: bool) -> None:
        self._is_broken = self._is_broken or not is_taken
        if not given.taken.done():
            given.taken.set_result(is_taken)

    async def _until(self, is_so: Callable[[], object]) -> None:
        """Return when it is so; nothing that moves between a look and the next is missed."""
        while not is_so():
            self._has_moved.clear()
            await self._has_moved.wait()

    def _is_full(self) -> bool:
        size = sum(len(each.delivery.update.document) for each in self._given)
        return len(self._given) >= WINDOW or size > WINDOW_BYTES


def publication(feed: Feed, delivery: Delivery) -> Publication:
    """Return the message of a delivery, under the topic that the subscription names."""
    stream, subscription = delivery.stream, feed.subscription
    # Some were made before such destinations were refused: they go on, in a space of their own.
    topic = plain(topic_of(orjson.loads(subscription.document)["destination"]))
    if subscription.callback == "pubsub":
        topic += f"/{part(stream.service_object)}/streams/{part(stream.stream)}/updates"
    levels = tuple(topic.split("/"))
    return Publication(feed.tenant, levels, delivery.update.document, stream)
