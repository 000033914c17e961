"""One port for MQTT, STOMP, and both of them over WebSocket: the first bytes tell which it is.

And one for all of that by TLS.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from broker.broker import Broker
from broker.mqtt import MAX_HELLO_BYTES, MqttConversation
from broker.mqtt_packets import Kind
from broker.stomp import StompConversation
from broker.turns import Turns
from broker.wire import Wire
from delivery.entrance import Entrance
from delivery.transport import CLOSE_SECONDS
from servioticy.doors.certificate import Certificate

HELLO_SECONDS = 10.0
ENVELOPE_BYTES = 16_384
"""A message may be so much larger than its payload."""
LENGTH_BYTES, CONTINUES = 4, 0x80
"""Of a packet of MQTT: how many bytes tell its length; those from this on are not the last."""
MQTT, HTTP = bytes([Kind.CONNECT << 4]), b"G"
STOMP = frozenset({b"C", b"S", b"\n", b"\r"})

log = logging.getLogger("servioticy.delivery")


class Ports(NamedTuple):
    """Where clients come; 0: nowhere."""

    plain: int
    tls: int = 0
    certificate: Certificate | None = None


class BrokerTransport:
    """Keeps to the protocol `Transport`."""

    def __init__(self, broker: Broker, host: str, ports: Ports, max_payload: int) -> None:
        self._broker = broker
        self._host = host
        self._ports = ports
        self._max_packet = max_payload + ENVELOPE_BYTES
        self._servers: list[asyncio.Server] = []
        self._entrances: list[Entrance] = []
        self._talks: set[asyncio.Task[None]] = set()
        self.turns = Turns()

    async def start(self) -> None:
        """Listen from now on, if the port is free: another broker may have it already."""
        await self._broker.start()
        await self._listen(self._ports.plain, None)
        await self._listen(self._ports.tls, self._ports.certificate)

    async def _listen(self, port: int, certificate: Certificate | None) -> None:
        if not port:
            return
        try:
            server = await asyncio.start_server(self._accept, self._host, port)
        except OSError as error:
            log.error("mqtt_port_taken", extra={"port": port, "why": str(error)})
            return
        pending = self._broker.hub.reception.pending
        entrance = Entrance(pending, self._protocol, is_nonsense, b"", certificate)
        entrance.open(server.sockets)
        self._servers.append(server)
        self._entrances.append(entrance)

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(), self._accept)

    async def stop(self) -> None:
        """Let all clients go."""
        for entrance in self._entrances:
            entrance.close()
        for server in self._servers:
            server.close()
        await self._broker.stop()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        if talk is not None:
            self._talks.add(talk)
            talk.add_done_callback(self._talks.discard)
        wire = Wire(reader, writer.transport, self.turns)
        pending = self._broker.hub.reception.pending
        pending.connected(wire)
        try:
            await self._talk(wire)
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass
        except Exception:
            log.exception("conversation_failed")
        finally:
            wire.close()
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await writer.wait_closed()
            except (TimeoutError, OSError):
                wire.abort()
            pending.disconnected(wire)
            wire.lost()

    async def _talk(self, wire: Wire) -> None:
        first = await self._first(wire)
        if first == HTTP:
            wire.become_websocket(self._max_packet)
            first = await self._first(wire)
        if first == MQTT:
            await MqttConversation(self._broker, wire, self._max_packet).run()
        elif first in STOMP:
            await StompConversation(self._broker, wire, self._max_packet).run()

    @staticmethod
    async def _first(wire: Wire) -> bytes:
        """Return the first byte, and leave it there."""
        async with asyncio.timeout(HELLO_SECONDS):
            await wire.begin_frame()
            return await wire.peek()


def is_nonsense(first: bytes) -> bool:
    """Tell whether these bytes are the beginning of nothing that we speak; there may be none."""
    if first[:1] == MQTT:
        return _is_no_hello(first[1 : 1 + LENGTH_BYTES])
    return bool(first) and first[:1] not in (HTTP, *STOMP)


def _is_no_hello(length: bytes) -> bool:
    """Tell whether no CONNECT has this length, as far as it has come."""
    size = 0
    for place, byte in enumerate(length):
        size |= (byte & 0x7F) << 7 * place
        if byte < CONTINUES:
            return size > MAX_HELLO_BYTES
    return len(length) == LENGTH_BYTES
