"""What all clients of the broker share, whatever they speak: logging in, subscribing, leaving."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from functools import partial
from typing import Protocol

import orjson

from broker.claims import Claims, told
from broker.client import Client, Subscription, nothing_of
from broker.exchange import Exchange
from broker.lane import Lane
from broker.names import Names
from broker.outcomes import Outcome
from broker.places import Places
from broker.topics import OWN, Filter, read_filter
from broker.watch import Watch
from delivery.admission.owner_semaphore import SemaphoreFull
from delivery.admission.pending import Caller
from delivery.admission.refusals import Refusal, Refused
from delivery.admission.requests import Identity, WatchRequest
from delivery.admission.stays import Grounds, Stay
from delivery.hub import Hub
from delivery.rest_api import Api
from servioticy.domain.message_topics import CLAIMS, ERRORS
from servioticy.domain.model import StreamKey, StreamRef
from servioticy.domain.tokens import read_token
from servioticy.errors import Unavailable
from servioticy.ports.history import VersionedUpdate

OLD_LOGIN = ("compose", "shines")
"""All clients of the original have it; who they are is told by their topics."""
NOT_LISTENING = Refusal(400, f"Subscribe to {CLAIMS} first: the answer comes there")

log = logging.getLogger("servioticy.delivery")


class LastUpdateReader(Protocol):
    """Knows the last stored update of each stream."""

    def last_update(self, stream: StreamKey) -> VersionedUpdate | None:
        """Return it, or None where there is none. Raises Unavailable."""


class Broker:
    """Lets clients in and out, and tells them what is theirs to know."""

    def __init__(
        self,
        hub: Hub,
        last_updates: LastUpdateReader,
        api: Api,
        lane: Lane,
        names: Names | None = None,
    ) -> None:
        """Without `names`, those of clients are known here alone."""
        self.hub = hub
        self.api = api
        self.lane = lane
        """What clients publish goes into the log by it."""
        self.exchange = Exchange()
        self.places = Places()
        """At the API, for what clients ask it, and what devices say of actuations."""
        self._claims = Claims(api)
        self.clients: dict[Client, Caller] = {}
        self.refused = 0
        """Messages of clients that could not be taken."""
        self._last_updates = last_updates
        self._watches: dict[Subscription, Watch] = {}
        self._names = names or Names()
        self.changed: Callable[[Client], None] = nothing_of
        """Hears of each client that subscribes to something else than before, or goes."""
        self._stays: dict[object, Stay] = {}
        """Of clients that have said who they are, and of what they watch."""

    async def start(self) -> None:
        """Be ready for clients."""

    async def stop(self) -> None:
        """Let all clients go."""
        for client in list(self.clients):
            client.close("the server stops")

    def join(self, client: Client, caller: Caller) -> None:
        """Count a client that has said hello, and perhaps not yet who it is."""
        self.clients[client] = caller

    def leave(self, client: Client) -> None:
        """Forget a client that is gone."""
        for name in list(client.subscriptions):
            self.unsubscribe(client, name)
        self._names.leave(client)
        self.clients.pop(client, None)
        self._leave(client)
        client.gone()

    async def log_in(self, client: Client, user: str, password: str) -> None:
        """Find out who it is, where it says so. Raises Refused."""
        token = read_token(password)
        if token and (user, password) != OLD_LOGIN:
            await self.identify(client, token)

    async def identify(self, client: Client, text: str) -> Identity:
        """Return who has the token that the client has shown. Raises Refused.

        The first one says who the client is; others have to be of the same tenant.
        """
        token, known, caller = read_token(text), client.identity, self.clients[client]
        if known is not None and known.token == token:
            return known
        found = await self.hub.reception.recognise(caller, token)
        if isinstance(found, Refusal):
            raise Refused(found)
        if client.identity is None:
            self._admit(client, caller, found)
            self._stay(client, found, client)
        if client.known.tenant != found.tenant:
            raise Refused(Refusal(403, "This connection is another tenant's"))
        return found

    def _admit(self, client: Client, caller: Caller, identity: Identity) -> None:
        self.hub.reception.take_place(caller, identity.tenant)
        self.hub.reception.pending.remove(caller)
        client.identity = identity
        client.became_known()
        self._names.take(client)

    def _stay(self, client: Client, grounds: Grounds, what: object) -> None:
        self._stays[what] = self.hub.reception.stays.begin(grounds, client.dismiss)

    def _leave(self, what: object) -> None:
        stay = self._stays.pop(what, None)
        if stay is not None:
            self.hub.reception.stays.leave(stay)

    async def subscribe(self, client: Client, name: str, text: str, qos: int) -> Subscription:
        """Return a subscription that gets what comes. Raises BadTopic, Refused."""
        wanted = read_filter(text)
        stream = wanted.watched
        if stream is not None:
            return await self._watch(client, name, wanted, stream, qos)
        if client.identity is None and wanted.levels not in OWN:
            await self.identify(client, wanted.levels[0])
        self.unsubscribe(client, name)
        subscription = client.subscribe(name, wanted, qos)
        if wanted.levels not in OWN:
            self.exchange.add(subscription)
            self.changed(client)
        return subscription

    async def begin(self, subscription: Subscription, *, with_last: bool) -> None:
        """Send a new subscription the last value of its stream, if any, and what came since."""
        watch = self._watches.get(subscription)
        if watch is None:
            return
        last = None
        if with_last:
            read = partial(self._last_updates.last_update, watch.admission.key)
            try:
                last = await self.hub.history_calls.run(watch.admission.tenant, read)
            except (Unavailable, SemaphoreFull):
                log.warning("last_update_not_sent")
        if watch.begin(last.document if last else None):
            admission = watch.admission
            self.hub.fanout.note(admission.tenant, admission.key.tenant, admission.stream)

    async def _watch(
        self, client: Client, name: str, wanted: Filter, stream: StreamRef, qos: int
    ) -> Subscription:
        request = WatchRequest(stream, client.known.token, None)
        admission = await self.hub.reception.examine(request)
        if isinstance(admission, Refusal):
            raise Refused(admission)
        self.unsubscribe(client, name)
        subscription = client.subscribe(name, wanted, qos)
        self._watches[subscription] = watch = Watch(subscription, admission)
        self._stay(client, admission, subscription)
        self.hub.watchers.add(stream, watch)
        return subscription

    def unsubscribe(self, client: Client, name: str) -> bool:
        """End a subscription; tell whether there was one."""
        subscription = client.subscriptions.pop(name, None)
        if subscription is None:
            return False
        if client.identity is not None:
            self.exchange.remove(subscription)
            self.changed(client)
        watch = self._watches.pop(subscription, None)
        self._leave(subscription)
        if watch is not None:
            self.hub.watchers.remove(watch.admission.stream, watch)
        return True

    def tell(self, client: Client, topic: str, answer: Outcome) -> None:
        """Tell a client that asks for its errors that a message was not taken."""
        self.refused += 1
        refusal = {"topic": topic, "status": answer.status, "message": answer.message}
        for each in _own(client, ERRORS):
            each.send((ERRORS,), orjson.dumps(refusal), _nothing, old=False)

    async def claim(self, client: Client, body: bytes) -> None:
        """Claim for a device, and tell its client what comes of that. Raises Refused.

        A client that was nobody is the device from then on.
        """
        if not _own(client, CLAIMS):
            raise Refused(NOT_LISTENING)
        answer = await self._claims.ask(self.clients[client].address, body)
        message, token = told(answer)
        if token is not None and client.identity is None:
            with contextlib.suppress(Refused):  # it may come again with the token
                await self.identify(client, token)
        for each in _own(client, CLAIMS):
            each.send((CLAIMS,), message, _nothing, old=False)


def _own(client: Client, topic: str) -> list[Subscription]:
    """Return the subscriptions of a client to what is about itself."""
    return [each for each in client.subscriptions.values() if each.wanted.levels == (topic,)]


def _nothing(_is_taken: bool) -> None:
    """Nobody asks what became of it."""
