"""From whoever publishes to whoever subscribes, within one tenant: this is the only way."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

from broker.client import Client, Publication, Subscription, Taken
from broker.topics import ALL

Key = tuple[int, str]

AT_ONCE = 50
"""Clients that are given a message before others have their turn in the loop."""


class Exchange:
    """Knows who subscribes to which topics, by tenant and the first part of the topics."""

    def __init__(self) -> None:
        self._subscriptions: dict[Key, dict[Subscription, None]] = {}
        self._came: defaultdict[Key, list[asyncio.Future[None]]] = defaultdict(list)
        self.added: Callable[[Subscription], None] = _unheard
        """Hears of each that is added."""
        self.published = 0
        """Messages given to clients so far, once for each."""

    def add(self, subscription: Subscription) -> None:
        """Count it from now on; whoever waits for it goes on."""
        for key in _keys(subscription):
            self._subscriptions.setdefault(key, {})[subscription] = None
        for key in self._waited_for(subscription):
            for waiting in self._came.pop(key, ()):
                if not waiting.done():
                    waiting.set_result(None)
        self.added(subscription)

    def remove(self, subscription: Subscription) -> None:
        """Count it no longer; harmless if it was not."""
        for key in _keys(subscription):
            held = self._subscriptions.get(key, {})
            held.pop(subscription, None)
            if not held:
                self._subscriptions.pop(key, None)

    def subscribers(self, publication: Publication) -> list[Subscription]:
        """Return one subscription of each client that is to get it: that which asks for most."""
        found: dict[Client, Subscription] = {}
        for first in (publication.levels[0], ALL):
            for each in self._subscriptions.get((publication.tenant, first), ()):
                best = found.get(each.client)
                if (
                    each.client.is_open
                    and (best is None or each.qos > best.qos)
                    and each.wants(publication)
                    and publication.is_for(each.client.known)
                ):
                    found[each.client] = each
        return list(found.values())

    def publish(self, publication: Publication) -> int:
        """Give it to whoever subscribes now; return how many those are."""
        found = self.subscribers(publication)
        for each in found:
            each.send(publication.levels, publication.payload, _nothing, old=False)
        self.published += len(found)
        return len(found)

    def give(self, publication: Publication, taken: Taken) -> None:
        """Give it to whoever subscribes now; `taken` is told whether anybody has got it."""
        found = self.subscribers(publication)
        if not found:
            taken(False)
            return
        report = _Report(len(found), taken)
        for each in found:
            each.send(publication.levels, publication.payload, report.taken, old=False)
        self.published += len(found)

    async def hand_over(
        self, publication: Publication, taken: Taken, is_wanted: Callable[[], bool]
    ) -> None:
        """Give it to whoever subscribes, or will; `taken` is told whether anybody has got it.

        A client that has no room for it is waited for. Where it is not wanted any more by the
        time it can go, it does not go.
        """
        while not (found := self.subscribers(publication)):
            await self._someone(publication.tenant, publication.levels[0])
        report = _Report(len(found), taken)
        for number, each in enumerate(found, 1):
            if not number % AT_ONCE:
                await asyncio.sleep(0)  # it is others' turn
            await each.client.room()
            if not is_wanted():
                return
            each.send(publication.levels, publication.payload, report.taken, old=False)
        self.published += len(found)

    def _waited_for(self, subscription: Subscription) -> list[Key]:
        """Return what is waited for that this subscription may match."""
        tenant = subscription.client.known.tenant
        if subscription.wanted.is_everything:
            return [key for key in self._came if key[0] == tenant]
        return _keys(subscription)

    async def _someone(self, tenant: int, first: str) -> None:
        came: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._came[tenant, first]
        waiting.append(came)
        try:
            await came
        finally:
            if came in waiting:
                waiting.remove(came)
            if not self._came.get((tenant, first), True):
                del self._came[tenant, first]


class _Report:
    """Adds up what became of a message that several clients get."""

    def __init__(self, clients: int, tell: Taken) -> None:
        self._left = clients
        self._has_one = False
        self._tell = tell

    def taken(self, is_taken: bool) -> None:
        """Note what one client says, or that it is gone."""
        self._left -= 1
        self._has_one = self._has_one or is_taken
        if not self._left:
            self._tell(self._has_one)


def _keys(subscription: Subscription) -> list[Key]:
    tenant = subscription.client.known.tenant
    return [(tenant, each) for each in subscription.wanted.keys]


def _unheard(_subscription: Subscription) -> None:
    """Nobody asks who has come."""


def _nothing(_is_taken: bool) -> None:
    """Nobody asks what became of it."""
