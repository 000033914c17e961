"""Durable topics for clients of a process that does not have them: another one is asked.

Of several processes of the broker one delivers to all durable subscriptions of a tenant. Another
one is a client of it, once for each client of its own that subscribes to what may be such a topic,
with that client's token: so who may have what is decided there as if the client had come there
itself. What comes is acknowledged there when the client has acknowledged it here.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple
from urllib.parse import urlsplit

from broker import mqtt_packets as packets
from broker.bridge import packets as ours
from broker.bridge.incoming import read_packet
from broker.broker import Broker
from broker.client import Client
from broker.errors import Malformed
from broker.mqtt_outlet import WINDOW
from broker.mqtt_packets import V5, Kind, Message
from broker.topics import OWN, Filter, matches
from broker.wire import Wire
from delivery.repeating import for_ever
from delivery.transport import CLOSE_SECONDS
from servioticy.domain.feed_slots import of_tenant
from servioticy.domain.message_topics import ACTIONS, ACTUATIONS, FROM, TO
from servioticy.ports.cursors import Claim

PLAIN, SECURE = "mqtt", "mqtts"
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 15.0
KEEP_ALIVE_SECONDS = 30
LOOK_SECONDS = 0.25
PAUSE_SECONDS = 0.5
"""Before a connection is tried again; twice as long at most."""
LONGEST_PAUSE_SECONDS = 5.0
USER = "another process of the broker"
_THE_PLATFORMS = frozenset({ACTIONS, ACTUATIONS, FROM, TO})

log = logging.getLogger("servioticy.delivery")


class Peer(NamedTuple):
    """Where the process is reached that delivers."""

    host: str
    port: int
    is_secure: bool


@lru_cache
def read_peer(address: str) -> Peer | None:
    """Return what an address such as `mqtt://10.1.0.7:1883` names; None: it is none."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in (PLAIN, SECURE) or not parts.hostname or not port:
        return None
    return Peer(parts.hostname, port, parts.scheme == SECURE)


def may_be_durable(wanted: Filter) -> bool:
    """Tell whether a durable subscription may have a topic that matches.

    Where the platform's own stand is none: so most devices need no second connection.
    """
    if wanted.levels in OWN or wanted.watched is not None or wanted.is_everything:
        return False
    return len(wanted.levels) != 2 or wanted.levels[1] not in _THE_PLATFORMS


class PassingOn:
    """All clients for whom another process is asked. Belongs to the event loop's thread."""

    def __init__(
        self,
        broker: Broker,
        claim: Callable[[], Claim],
        trust: ssl.SSLContext | bool,
        most_bytes: int,
    ) -> None:
        """`claim` tells where the processes are reached that deliver to other tenants."""
        self._broker = broker
        broker.changed = self.changed
        self._claim = claim
        self._trust = ssl.create_default_context() if trust is True else trust
        self._most_bytes = most_bytes
        self._elsewhere: Mapping[int, str] = {}
        """Who is reached where, as it was when all clients were looked at."""
        self._relays: dict[Client, Relay] = {}
        self._following: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return for how many clients another process is asked."""
        return len(self._relays)

    def start(self) -> None:
        """Follow who delivers, from now on."""
        self._following = asyncio.create_task(for_ever(self._look, "passing_on"))

    async def stop(self) -> None:
        """Ask nobody any more."""
        if self._following is not None:
            self._following.cancel()
        for client in list(self._relays):
            self._end(client)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def changed(self, client: Client) -> None:
        """Note that a client may subscribe to something else than before, or is gone."""
        wanted = _wanted(client) if client.is_open and not client.is_passed_on else frozenset()
        peer = self._peer_of(client) if wanted else None
        relay = self._relays.get(client)
        if relay is not None and relay.peer == peer:
            relay.wants(wanted)
            return
        self._end(client)
        if peer is not None:
            self._begin(client, peer, wanted)

    def _peer_of(self, client: Client) -> Peer | None:
        """Return where the process is reached that delivers to a client's tenant, if another."""
        address = self._claim().holder(of_tenant(client.tenant))
        return read_peer(address) if address else None

    async def _follow(self) -> None:
        """Ask whoever delivers by now. Raises what one met, once all have had their turn."""
        failure: Exception | None = None
        for number, client in enumerate(list(self._broker.clients)):
            try:
                self.changed(client)
            except Exception as error:  # noqa: BLE001  raised below
                failure = error
            if not number % 50:
                await asyncio.sleep(0)  # it is others' turn
        if failure is not None:
            raise failure

    async def _look(self) -> None:
        await asyncio.sleep(LOOK_SECONDS)
        elsewhere = self._claim().elsewhere
        if elsewhere != self._elsewhere:
            await self._follow()
            self._elsewhere = elsewhere

    def _begin(self, client: Client, peer: Peer, wanted: frozenset[str]) -> None:
        trust = self._trust if peer.is_secure else None
        self._relays[client] = Relay(client, peer, trust or None, self._most_bytes, wanted)

    def _end(self, client: Client) -> None:
        relay = self._relays.pop(client, None)
        if relay is not None:
            relay.task.cancel()
            self._ending.add(relay.task)
            relay.task.add_done_callback(self._ending.discard)


class Relay:
    """Asks for one client, until its task is cancelled."""

    def __init__(
        self,
        client: Client,
        peer: Peer,
        trust: ssl.SSLContext | None,
        most_bytes: int,
        wanted: frozenset[str],
    ) -> None:
        self.peer = peer
        self._client = client
        self._trust = trust
        self._most_bytes = most_bytes
        self._wanted = wanted
        self._has_changed = asyncio.Event()
        self._last_id = 0
        self.task = asyncio.create_task(self._run())

    def wants(self, wanted: frozenset[str]) -> None:
        """Subscribe to these from now on."""
        if wanted != self._wanted:
            self._wanted = wanted
            self._has_changed.set()

    async def _run(self) -> None:
        """Be connected, or try to be."""
        pause = PAUSE_SECONDS
        while True:
            try:
                await self._once()
                pause = PAUSE_SECONDS
            except (Malformed, TimeoutError, OSError, asyncio.IncompleteReadError) as error:
                why = str(error) or type(error).__name__
                log.info("not_passed_on", extra={"why": why[:200]})
            except Exception:
                log.exception("passing_on_failed")
            # Those of many clients do not come together.
            await asyncio.sleep(pause * (1 + random.random()))  # noqa: S311
            pause = min(LONGEST_PAUSE_SECONDS, pause * 2)

    async def _once(self) -> None:
        """Keep one connection until it is lost; returns only where it had been let in."""
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                self.peer.host, self.peer.port, ssl=self._trust
            )
        wire = Wire(reader, writer.transport)
        helper: asyncio.Task[None] | None = None
        try:
            await self._enter(wire)
            helper = asyncio.create_task(self._subscribe(wire))
            await self._read(wire)
        finally:
            if helper is not None:
                helper.cancel()
            wire.close()
            asyncio.get_running_loop().call_later(CLOSE_SECONDS, wire.abort)
            wire.lost()

    async def _enter(self, wire: Wire) -> None:
        token = self._client.known.token
        hello = ours.Hello(
            V5, "", USER, token, KEEP_ALIVE_SECONDS, 0, WINDOW, self._most_bytes, is_passed_on=True
        )
        wire.write(ours.connect(hello))
        packet = await read_packet(wire, self._most_bytes, ANSWER_SECONDS)
        if packet.kind != Kind.CONNACK:
            raise Malformed("its first packet is no CONNACK")
        welcome = ours.read_welcome(packet.content, V5)
        if welcome.code:
            raise Malformed(f"it does not let us in ({welcome.code:#04x})")

    async def _subscribe(self, wire: Wire) -> None:
        """Let it know what the client subscribes to, as that changes; and that we live."""
        told = frozenset[str]()
        while True:
            self._has_changed.clear()
            wanted = self._wanted
            ended, begun = sorted(told - wanted), sorted(wanted - told)
            for start in range(0, len(ended), packets.MAX_FILTERS):
                some = ended[start : start + packets.MAX_FILTERS]
                wire.write(ours.unsubscribe(self._next_id(), some, V5))
            for start in range(0, len(begun), packets.MAX_FILTERS):
                some = begun[start : start + packets.MAX_FILTERS]
                wire.write(ours.subscribe(self._next_id(), some, 1, V5))
            told = wanted
            try:
                async with asyncio.timeout(KEEP_ALIVE_SECONDS / 2):
                    await self._has_changed.wait()
            except TimeoutError:
                wire.write(packets.packet(Kind.PINGREQ))

    def _next_id(self) -> int:
        self._last_id = self._last_id % 65_535 + 1
        return self._last_id

    async def _read(self, wire: Wire) -> None:
        """Take what comes, until the connection is lost."""
        try:
            while True:
                packet = await read_packet(wire, self._most_bytes, KEEP_ALIVE_SECONDS * 1.5)
                if packet.kind == Kind.DISCONNECT:
                    return
                if packet.kind == Kind.PUBLISH and packet.is_whole:
                    found = packets.read_publish(packet.flags, packet.content, V5)
                    self._give(wire, found)
                elif packet.kind == Kind.PUBLISH:
                    raise Malformed("a message is larger than we had said")
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            return

    def _give(self, wire: Wire, message: Message) -> None:
        """Give a message to the client, as that subscription which asks for most."""
        levels = tuple(message.topic.split("/"))
        found = [
            each
            for each in self._client.subscriptions.values()
            if each.wanted.levels[0] == levels[0] and matches(each.wanted.levels, levels)
        ]
        if not found:
            wire.close()  # it has ended the subscription: others are to have it, or it comes later
            return
        best = max(found, key=lambda each: each.qos)
        taken = partial(_acknowledge, wire, message.packet_id)
        self._client.send(best, message.topic, message.payload, taken, old=False)


def _acknowledge(wire: Wire, packet_id: int, is_taken: bool) -> None:
    """Acknowledge what the client has; what it has not taken comes again, to whoever is there."""
    if is_taken and packet_id:
        wire.write(packets.acknowledgement(Kind.PUBACK, packet_id, V5))
    elif not is_taken:
        wire.close()


def _wanted(client: Client) -> frozenset[str]:
    """Return the filters of a client that durable subscriptions may match."""
    return frozenset(
        "/".join(each.wanted.levels)
        for each in client.subscriptions.values()
        if may_be_durable(each.wanted)
    )
