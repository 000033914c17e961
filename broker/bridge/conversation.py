"""One connection to the broker: a client of ours whose topics are all of one tenant's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from broker import mqtt_packets as packets
from broker.bridge import packets as ours
from broker.bridge import reasons
from broker.bridge.bindings import Binding, Target
from broker.bridge.bound import Bound
from broker.bridge.complaints import Complaints
from broker.bridge.incoming import Packet, read_packet
from broker.bridge.outlet import BridgeOutlet
from broker.bridge.reasons import Lost
from broker.broker import Broker
from broker.client import Client, Publication, Subscription
from broker.errors import Malformed
from broker.intake import Intake
from broker.mqtt_outlet import WINDOW
from broker.mqtt_packets import V5, Body, Kind, Message
from broker.outcomes import Outcome
from broker.published import Published
from broker.topics import EVERYTHING, Filter
from broker.wire import Wire
from servioticy.domain.message_topics import ACTUATIONS, ERRORS, FROM, UPDATES
from servioticy.refusals import TOO_LARGE

MOST_AT_ONCE = 200
"""Messages that the broker may send before we have acknowledged the first."""
KEEP_ALIVE_SECONDS = 30
ANSWER_SECONDS = 15.0
"""In which the broker has to let us in, and grant what we subscribe to."""
RETAINED = 1
SERVER_KEEP_ALIVE = 0x13


class Terms(NamedTuple):
    """How we deal with the broker."""

    qos: int
    session_seconds: int
    most_bytes: int
    """Of a packet."""


class OtherVersion(Exception):
    """The broker does not speak this version, or goes when it hears of it."""


class Conversation:
    """Keeps a connection until either side ends it."""

    def __init__(
        self, broker: Broker, binding: Binding, terms: Terms, wire: Wire, complaints: Complaints
    ) -> None:
        self._broker = broker
        self._binding = binding
        self._terms = terms
        self._wire = wire
        self._complaints = complaints
        self._outlet = BridgeOutlet(wire, binding.above, packets.V5)
        self._client = Client(self._outlet, broker.hub.backlog)
        bound = Bound(
            broker.lane, broker.api, broker.hub.reception, self._client, wire, binding.token
        )
        self._intake = Intake(
            self._client, bound, bound, self._reply, broker.identify, places=broker.places
        )
        self._everything: Subscription
        self._is_granted = False
        self._owed: dict[int, bool] = {}
        """Messages that are not acknowledged, in their order, and whether they may be."""
        self._silence = KEEP_ALIVE_SECONDS * 1.5

    async def run(self, target: Target, version: int, connected: Callable[[], None]) -> None:
        """Talk; `connected` is called when messages go both ways. Raises Lost, Refused."""
        self._outlet.version = version
        self._broker.join(self._client, self._wire)
        helper: asyncio.Task[None] | None = None
        try:
            await self._broker.identify(self._client, self._binding.token)
            self._intake.start()
            keep_alive = await self._enter(target)
            helper = asyncio.create_task(self._keep_alive(keep_alive))
            self._subscribe()
            while self._client.is_open:
                packet = await read_packet(self._wire, self._terms.most_bytes, self._silence)
                await self._take(packet, connected)
        except Malformed as error:
            raise Lost(f"the broker sends what is no MQTT: {error}") from error
        except TimeoutError:
            raise Lost(self._outlet.ending or "the broker is silent") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Lost(self._outlet.ending or "the broker has ended the connection") from None
        finally:
            if helper is not None:
                helper.cancel()
            self._client.close("we go")
            self._outlet.gone()
            await self._intake.finish()
            self._broker.leave(self._client)
        raise Lost(self._outlet.ending)

    # The beginning

    async def _enter(self, target: Target) -> int:
        """Say hello; return how often the broker wants to hear of us, in seconds."""
        version = self._outlet.version
        hello = ours.Hello(
            version,
            self._binding.client_id,
            target.user,
            target.password,
            KEEP_ALIVE_SECONDS,
            self._terms.session_seconds,
            MOST_AT_ONCE,
            self._terms.most_bytes,
        )
        self._wire.write(ours.connect(hello))
        try:
            packet = await read_packet(self._wire, self._terms.most_bytes, ANSWER_SECONDS)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise OtherVersion from None
        if packet.kind != Kind.CONNACK:
            raise Malformed("its first packet is no CONNACK")
        welcome = ours.read_welcome(packet.content, version)
        if welcome.code in reasons.UNKNOWN_VERSION:
            raise OtherVersion
        if welcome.code:
            raise reasons.refused(welcome.code)
        self._outlet.window = min(WINDOW, _number(welcome, packets.RECEIVE_MAXIMUM, WINDOW))
        self._outlet.max_packet = _number(welcome, packets.MAXIMUM_PACKET, 0)
        return _number(welcome, SERVER_KEEP_ALIVE, 0) or KEEP_ALIVE_SECONDS

    def _subscribe(self) -> None:
        """Ask for what the platform takes; the session may have messages before the answer."""
        known = (f"{UPDATES}/+/+", f"+/{FROM}", f"+/{ACTUATIONS}/+")
        filters = [self._binding.above + each for each in known]
        self._client.subscribe(ERRORS, Filter((ERRORS,)), self._terms.qos)
        self._everything = self._client.subscribe("", EVERYTHING, self._terms.qos)
        self._wire.write(ours.subscribe(1, filters, self._terms.qos, self._outlet.version))
        asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._check_granted)

    def _check_granted(self) -> None:
        if not self._is_granted:
            self._client.close("the broker does not answer our SUBSCRIBE")

    def _granted(self, codes: list[int]) -> None:
        """Let messages go out, too. Raises Lost where what comes in is refused."""
        if any(code >= 0x80 for code in codes):
            above = self._binding.above
            raise Lost(f"we may not subscribe below {above!r}: let bridge_user read there")
        if any(code < self._terms.qos for code in codes):
            self._complaints.note("bridge_qos_lower")
        self._is_granted = True
        self._broker.exchange.add(self._everything)

    async def _keep_alive(self, seconds: int) -> None:
        self._silence = max(seconds, 2) * 1.5
        while True:
            await asyncio.sleep(max(seconds, 2) / 2)
            self._wire.write(packets.packet(Kind.PINGREQ))

    # What comes

    async def _take(self, packet: Packet, connected: Callable[[], None]) -> None:
        if packet.kind == Kind.PUBLISH:
            await self._publish(packet)
        elif packet.kind == Kind.PUBACK:
            self._acknowledged(*ours.read_acknowledgement(packet.content))
        elif packet.kind == Kind.SUBACK:
            self._granted(ours.read_granted(packet.content, self._outlet.version))
            connected()
        elif packet.kind == Kind.DISCONNECT:
            raise reasons.farewell(ours.read_farewell(packet.content))
        elif packet.kind != Kind.PINGRESP:
            raise Malformed(f"packet {packet.kind} is none for us")

    async def _publish(self, packet: Packet) -> None:
        message = self._read(packet)
        if message.qos:
            if message.packet_id in self._owed:
                return
            self._owed[message.packet_id] = False
        known = message.topic.removeprefix(self._binding.above)
        if packet.flags & RETAINED:
            self._settle(message)  # it was said before anybody asked, perhaps long ago
        elif not packet.is_whole:
            self._refuse(message, known, Outcome(413, TOO_LARGE))
        else:
            await self._room(message)
            answered = partial(self._answered, message, known)
            self._intake.add(Published(known, message.payload, message.qos > 0, answered))

    async def _room(self, message: Message) -> None:
        """Wait for room, where our Receive Maximum does not bound what comes. Raises Lost.

        Nothing is read meanwhile, neither acknowledgements nor the end. So that lasts no longer
        than the broker may be silent: then the session keeps what comes.
        """
        is_bounded = self._outlet.version >= V5 and len(self._owed) <= MOST_AT_ONCE
        if message.qos and is_bounded:
            return
        try:
            async with asyncio.timeout(self._silence):
                await self._intake.room()
        except TimeoutError:
            raise Lost(
                "the platform does not take what comes: the broker has to keep it"
            ) from None

    def _read(self, packet: Packet) -> Message:
        """Return a message; of one that is too large, all but its payload."""
        if packet.flags >> 1 & 3 > 1:
            raise Malformed("a message has another quality of service than we asked for")
        if packet.is_whole:
            return packets.read_publish(packet.flags, packet.content, self._outlet.version)
        head, qos = Body(packet.content), packet.flags >> 1 & 3
        return Message(head.text(), b"", qos, head.packet_id() if qos else 0)

    def _answered(self, message: Message, known: str, answer: Outcome) -> None:
        """Acknowledge what is safe, or never will be."""
        if answer.is_taken:
            self._settle(message)
        elif message.qos and not self._client.is_open:
            return  # it comes again, over the next connection
        elif message.qos and answer.is_for_now:
            self._client.close("a message could not be taken: the broker has to send it again")
        else:
            self._refuse(message, known, answer)

    def _refuse(self, message: Message, known: str, answer: Outcome) -> None:
        self._broker.tell(self._client, known, answer)
        # Not the topic: there may be a token in it.
        note = self._complaints.note
        note("bridge_message_refused", status=answer.status, why=answer.message[:200])
        self._settle(message)

    def _settle(self, message: Message) -> None:
        """Note that a message may be acknowledged: that is done in the order they came."""
        if not message.qos:
            return
        self._owed[message.packet_id] = True
        for packet_id in list(self._owed):
            if not self._owed[packet_id]:
                return
            del self._owed[packet_id]
            version = self._outlet.version
            self._wire.write(packets.acknowledgement(Kind.PUBACK, packet_id, version))

    # What goes

    def _acknowledged(self, packet_id: int, code: int) -> None:
        if code in reasons.NOT_NOW:
            self._client.close(f"the broker cannot take a message at the moment ({code:#04x})")
            return
        if code >= 0x80:
            self._complaints.note("bridge_publish_refused", code=f"{code:#04x}")
        self._outlet.acknowledged(packet_id)
        self._client.note()

    def _reply(self, publication: Publication) -> None:
        """Answer a request, where it came from."""
        self._everything.send(publication.levels, publication.payload, _nothing, old=False)


def _number(welcome: ours.Welcome, number: int, otherwise: int) -> int:
    value = welcome.properties.get(number, otherwise)
    return value if isinstance(value, int) else otherwise


def _nothing(_is_taken: bool) -> None:
    """Nobody asks what became of it."""
