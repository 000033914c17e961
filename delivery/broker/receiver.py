"""Delivers the feeds of `pubsub` and `service` subscriptions to connected clients.

What is not acknowledged waits where all feeds wait: in the log. So nothing is stored for a
client that is away, and it gets what it missed when it comes again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass
from typing import Any

import orjson

from delivery.broker.client import Publication
from delivery.broker.exchange import Exchange
from delivery.feeds.feed import Delivery, Feed

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
        self.delivered = 0

    async def receive(self, feed: Feed) -> None:
        """Deliver what the feed gives, in order, until cancelled."""
        again: deque[Delivery] = deque()
        while True:
            again = await _Round(self, feed, again).run()

    async def hand_over(self, feed: Feed, given: _Given) -> None:
        """Give a delivery to whoever subscribes to its topic, or will."""
        await self._exchange.hand_over(publication(feed, given.delivery), given.taken)


class _Round:
    """Delivers until nobody is left who has got what was given: then all of that comes again."""

    def __init__(self, receiver: TopicReceiver, feed: Feed, again: deque[Delivery]) -> None:
        self._receiver = receiver
        self._feed = feed
        self._again = again
        self._given: deque[_Given] = deque()
        self._has_moved = asyncio.Event()

    async def run(self) -> deque[Delivery]:
        """Return what has to come again, in its order."""
        giving = asyncio.create_task(self._give())
        try:
            while True:
                while not self._given:
                    await self._unless_broken(giving, asyncio.create_task(self._moved()))
                taken = self._given[0].taken
                await self._unless_broken(giving, taken)
                if not taken.result():
                    break
                self._feed.done(self._given.popleft().delivery)
                self._receiver.delivered += 1
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
            while self._is_full():
                await self._moved()
            delivery = self._again.popleft() if self._again else await self._feed.take()
            given = _Given(delivery, loop.create_future())
            self._given.append(given)
            self._has_moved.set()
            await self._receiver.hand_over(self._feed, given)

    async def _moved(self) -> None:
        self._has_moved.clear()
        await self._has_moved.wait()

    def _is_full(self) -> bool:
        size = sum(len(each.delivery.update.document) for each in self._given)
        return len(self._given) >= WINDOW or size > WINDOW_BYTES


def publication(feed: Feed, delivery: Delivery) -> Publication:
    """Return the message of a delivery, under the topic that the subscription names."""
    stream, subscription = delivery.stream, feed.subscription
    destination = orjson.loads(subscription.document)["destination"]
    topic = destination
    if subscription.callback == "pubsub":
        topic = f"{destination}/{stream.service_object}/streams/{stream.stream}/updates"
    levels = tuple(topic.split("/"))
    return Publication(feed.tenant, levels, delivery.update.document, stream.service_object)
