"""A conversation in MQTT: 3.1, 3.1.1 or 5, as the client begins it."""

from __future__ import annotations

import asyncio
import struct
from functools import partial

from broker import mqtt_packets as packets
from broker.broker import Broker
from broker.client import Client
from broker.errors import BadTopic, Malformed, TooLarge
from broker.intake import Intake
from broker.mqtt_outlet import WINDOW, MqttOutlet
from broker.mqtt_packets import V5, Connect, Kind, Message, UnknownVersion, Wish
from broker.outcomes import Outcome
from broker.pings import Pings
from broker.published import Published
from broker.strangers import Strangeness
from broker.wire import Wire
from delivery.admission.refusals import Refused

HELLO_SECONDS = 10.0
PACKET_SECONDS = 30.0
MAX_HELLO_BYTES = 16_384
MAX_STRANGE_BYTES = 65_536
"""A packet of a client of whom it is not known yet who it is."""
MAX_INCOMPLETE = 100
"""Messages of quality of service 2 that the client has not released."""

UNSUPPORTED_VERSION, BAD_PASSWORD, UNAVAILABLE, BUSY = 0x84, 0x86, 0x88, 0x97
NOT_AUTHORIZED, BAD_FILTER, BAD_TOPIC, BAD_PAYLOAD, OTHER = 0x87, 0x8F, 0x90, 0x99, 0x83
REFUSALS_BEFORE_5 = {UNSUPPORTED_VERSION: 1, UNAVAILABLE: 3, BUSY: 3, BAD_PASSWORD: 4}
REASONS = {400: BAD_PAYLOAD, 401: NOT_AUTHORIZED, 403: NOT_AUTHORIZED, 404: BAD_TOPIC, 429: BUSY}


class MqttConversation:
    """One client that speaks MQTT."""

    def __init__(self, broker: Broker, wire: Wire, max_packet: int) -> None:
        self._broker = broker
        self._wire = wire
        self._max_packet = max_packet
        self._outlet = MqttOutlet(wire)
        self._client = Client(self._outlet, broker.hub.backlog)
        publish = broker.exchange.publish
        self._intake = Intake(
            self._client,
            broker.lane,
            broker.api,
            publish,
            broker.identify,
            broker.claim,
            broker.places,
        )
        self._incomplete: dict[int, bool] = {}
        """Of the messages of quality of service 2: whether they are accepted."""
        self._will: Message | None = None
        self._silence: float | None = None
        self._pings = Pings(lambda: wire.write(packets.packet(Kind.PINGRESP)))

    async def run(self) -> None:
        """Talk until either side ends it."""
        self._broker.join(self._client, self._wire)
        strangeness = Strangeness(self._client, self._wire)
        self._intake.start()
        try:
            if await self._welcome():
                while self._client.is_open:
                    await self._next()
        except Malformed as error:
            self._client.close(str(error))
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            pass
        finally:
            strangeness.stop()
            self._pings.stop()
            self._client.end()
            self._outlet.gone()
            if self._will is not None:
                will = Published(self._will.topic, self._will.payload, False, _nothing)
                await self._intake.put(will)
            await self._intake.finish()
            await self._wire.last_turn()
            self._broker.leave(self._client)

    async def _read(self, seconds: float | None, most: int) -> tuple[int, bytes]:
        """Return the first byte of the next packet, and what it holds."""
        async with asyncio.timeout(seconds):
            await self._wire.begin_frame()
            first = (await self._wire.readexactly(1))[0]
        async with asyncio.timeout(PACKET_SECONDS):
            size = 0
            for shift in range(0, 28, 7):
                byte = (await self._wire.readexactly(1))[0]
                size |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
            else:
                raise Malformed("a length has more than four bytes")
            if size > most:
                raise TooLarge(f"a packet has at most {most} bytes")
            return first, await self._wire.readexactly(size)

    # The beginning

    async def _welcome(self) -> bool:
        first, content = await self._read(HELLO_SECONDS, MAX_HELLO_BYTES)
        if first != Kind.CONNECT << 4:
            raise Malformed("the first packet is CONNECT")
        try:
            hello = packets.read_connect(content)
        except UnknownVersion:
            self._answer_hello(UNSUPPORTED_VERSION)
            return False
        self._outlet.version = hello.version
        self._outlet.window = min(WINDOW, self._property(hello, packets.RECEIVE_MAXIMUM) or WINDOW)
        self._outlet.max_packet = self._property(hello, packets.MAXIMUM_PACKET)
        self._client.name = hello.client
        self._client.is_passed_on = packets.PASSED_ON in hello.properties
        self._silence = hello.keep_alive * 1.5 or None
        refusal = await self._refusal(hello)
        self._answer_hello(refusal)
        if not refusal:
            self._will = hello.will
        return not refusal

    async def _refusal(self, hello: Connect) -> int:
        """Return why the client may not come, or 0."""
        if not self._broker.hub.reception.is_open:
            return UNAVAILABLE
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                await self._broker.log_in(self._client, hello.user, hello.password)
        except Refused as error:
            return {429: BUSY, 503: UNAVAILABLE}.get(error.refusal.status, BAD_PASSWORD)
        except TimeoutError:
            return UNAVAILABLE
        return 0

    def _answer_hello(self, refusal: int) -> None:
        version = self._outlet.version
        if version < V5:
            refusal = REFUSALS_BEFORE_5.get(refusal, refusal)
        about = b""
        if not refusal:
            about = b"".join(
                (
                    struct.pack(">BH", packets.RECEIVE_MAXIMUM, MAX_INCOMPLETE),
                    struct.pack(">BI", packets.MAXIMUM_PACKET, self._max_packet),
                    struct.pack(">BI", packets.SESSION_EXPIRY, 0),
                    struct.pack(">BB", packets.RETAIN_AVAILABLE, 1),
                    struct.pack(">BB", packets.SHARED_AVAILABLE, 0),
                )
            )
            if not self._client.name:
                self._client.name = f"client-{id(self):x}"
                name = packets.text(self._client.name)
                about += bytes([packets.ASSIGNED_CLIENT]) + name
        # No session is kept: what has to wait for a client is a subscription of the REST API.
        content = bytes([0, refusal]) + packets.properties(version, about)
        self._wire.write(packets.packet(Kind.CONNACK, content))

    @staticmethod
    def _property(hello: Connect, number: int) -> int:
        value = hello.properties.get(number, 0)
        return value if isinstance(value, int) else 0

    # What follows

    async def _next(self) -> None:
        most = self._max_packet if self._client.identity else MAX_STRANGE_BYTES
        first, content = await self._read(self._silence, most)
        kind, flags = first >> 4, first & 15
        if kind == Kind.PUBLISH:
            await self._publish(packets.read_publish(flags, content, self._outlet.version))
            return
        expected = 2 if kind in (Kind.SUBSCRIBE, Kind.UNSUBSCRIBE, Kind.PUBREL) else 0
        if flags != expected:
            raise Malformed("the flags of a packet are not those of its kind")
        if kind == Kind.PUBACK:
            self._outlet.acknowledged(packets.Body(content).packet_id())
            self._client.note()
        elif kind == Kind.PUBREL:
            self._release(packets.Body(content).packet_id())
        elif kind == Kind.SUBSCRIBE:
            await self._subscribe(*packets.read_subscribe(content, self._outlet.version))
        elif kind == Kind.UNSUBSCRIBE:
            self._unsubscribe(*packets.read_unsubscribe(content, self._outlet.version))
        elif kind == Kind.PINGREQ:
            self._pings.came()
        elif kind == Kind.DISCONNECT:
            if content[:1] in (b"", b"\0"):
                self._will = None
            self._client.end()
        else:
            raise Malformed("a client does not send such packets")

    async def _publish(self, message: Message) -> None:
        if message.qos == 2:
            if message.packet_id in self._incomplete:
                if self._incomplete[message.packet_id]:
                    self._acknowledge(Kind.PUBREC, message.packet_id)
                return
            if len(self._incomplete) >= MAX_INCOMPLETE:
                raise Malformed(f"at most {MAX_INCOMPLETE} messages may be without PUBREL")
            self._incomplete[message.packet_id] = False
        answered = partial(self._answered, message)
        await self._intake.put(
            Published(message.topic, message.payload, message.qos > 0, answered)
        )

    def _answered(self, message: Message, answer: Outcome) -> None:
        """Acknowledge what is safe, or never will be; tell the client of the latter."""
        if not answer.is_taken:
            self._broker.tell(self._client, message.topic, answer)
        if not message.qos:
            return
        if not answer.is_taken and not 400 <= answer.status < 500:
            self._client.close("a message could not be taken; send it again")
            return
        reason = 0 if answer.is_taken else REASONS.get(answer.status, OTHER)
        kind = Kind.PUBACK if message.qos == 1 else Kind.PUBREC
        if message.qos == 2:
            self._incomplete[message.packet_id] = True
            if reason and self._outlet.version >= V5:
                del self._incomplete[message.packet_id]
        why = answer.message if reason else "; ".join(answer.warnings)
        self._acknowledge(kind, message.packet_id, reason, why)

    def _release(self, packet_id: int) -> None:
        self._incomplete.pop(packet_id, None)
        self._acknowledge(Kind.PUBCOMP, packet_id)

    def _acknowledge(self, kind: Kind, packet_id: int, reason: int = 0, why: str = "") -> None:
        version = self._outlet.version
        self._wire.write(packets.acknowledgement(kind, packet_id, version, reason, why))

    async def _subscribe(self, packet_id: int, wishes: list[Wish]) -> None:
        codes, begun = [], []
        for wish in wishes:
            is_new = wish.text not in self._client.subscriptions
            qos = min(wish.qos, 1)
            try:
                found = await self._broker.subscribe(self._client, wish.text, wish.text, qos)
            except BadTopic:
                codes.append(BAD_FILTER)
            except Refused as error:
                codes.append(REASONS.get(error.refusal.status, OTHER))
            else:
                codes.append(qos)
                with_last = wish.retained == 0 or (wish.retained == 1 and is_new)
                begun.append((found, with_last))
        version = self._outlet.version
        if version < V5:
            codes = [min(code, 0x80) for code in codes]
        content = struct.pack(">H", packet_id) + packets.properties(version) + bytes(codes)
        self._wire.write(packets.packet(Kind.SUBACK, content))
        for found, with_last in begun:
            await self._broker.begin(found, with_last=with_last)

    def _unsubscribe(self, packet_id: int, names: list[str]) -> None:
        ended = [self._broker.unsubscribe(self._client, name) for name in names]
        version = self._outlet.version
        codes = bytes(0 if each else 0x11 for each in ended) if version >= V5 else b""
        content = struct.pack(">H", packet_id) + packets.properties(version) + codes
        self._wire.write(packets.packet(Kind.UNSUBACK, content))


def _nothing(_answer: Outcome) -> None:
    """Nobody is there to be told what became of a will."""
