"""Sends messages to one MQTT client, and keeps those that it has not acknowledged."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from broker import mqtt_packets as packets
from broker.client import MESSAGE_BYTES, Parting, Subscription, Taken
from broker.errors import visible
from broker.mqtt_packets import V5, Kind
from broker.wire import Wire
from delivery.transport import CLOSE_SECONDS

WINDOW = 64
"""Messages that may be unacknowledged; the client may want fewer."""
REASONS = {Parting.OURS: 0x8B, Parting.REFUSED: 0x87, Parting.TAKEN_OVER: 0x8E}
"""As MQTT 5 has them: server shutting down, not authorized, session taken over."""


class _Waiting(NamedTuple):
    topic: bytes
    payload: bytes
    taken: Taken
    old: bool

    @property
    def size(self) -> int:
        return len(self.topic) + len(self.payload) + MESSAGE_BYTES


class MqttOutlet:
    """Keeps to the protocol `Outlet`."""

    def __init__(self, wire: Wire) -> None:
        self.version = 4
        self.window = WINDOW
        self.max_packet = 0
        """The largest packet the client takes; 0: any."""
        self._wire = wire
        self._unacknowledged: dict[int, _Waiting] = {}
        self._queue: deque[_Waiting] = deque()
        self._kept = 0
        self._last_id = 0

    def send(
        self, subscription: Subscription, topic: str, payload: bytes, taken: Taken, *, old: bool
    ) -> None:
        """Send a message, at once or when the client has acknowledged enough of those before."""
        waiting = _Waiting(packets.text(topic), payload, taken, old)
        if self.max_packet and waiting.size > self.max_packet:
            taken(True)  # it says itself that it can do nothing with it
        elif subscription.qos:
            self._queue.append(waiting)
            self._kept += waiting.size
            self._go_on()
        else:
            self._write(waiting, 0)
            taken(True)

    def acknowledged(self, packet_id: int) -> None:
        """Note that the client has a message; one that it was not sent is no news."""
        waiting = self._unacknowledged.pop(packet_id, None)
        if waiting is not None:
            self._kept -= waiting.size
            self._go_on()
            waiting.taken(True)

    def unsent_bytes(self) -> int:
        """Return what is unsent, and what is not acknowledged."""
        return self._wire.unsent_bytes() + self._kept

    def close(self, why: str, parting: Parting = Parting.OURS) -> None:
        """Close; MQTT 5 tells why."""
        if self.version >= V5:
            told = bytes([packets.REASON_STRING]) + packets.text(visible(why))
            content = bytes([REASONS[parting]]) + packets.properties(V5, told)
            self._wire.write(packets.packet(Kind.DISCONNECT, content))
        self._wire.close()
        asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._wire.abort)

    def abort(self) -> None:
        """Cut the connection."""
        self._wire.abort()

    def gone(self) -> None:
        """Note that the client is gone: it has not got what it has not acknowledged."""
        left = [*self._unacknowledged.values(), *self._queue]
        self._unacknowledged.clear()
        self._queue.clear()
        self._kept = 0
        for each in left:
            each.taken(False)

    def _go_on(self) -> None:
        while self._queue and len(self._unacknowledged) < self.window:
            waiting = self._queue.popleft()
            self._last_id = self._last_id % 65_535 + 1
            while self._last_id in self._unacknowledged:
                self._last_id = self._last_id % 65_535 + 1
            self._unacknowledged[self._last_id] = waiting
            self._write(waiting, self._last_id)

    def _write(self, waiting: _Waiting, packet_id: int) -> None:
        self._wire.write(
            packets.publish(
                waiting.topic, waiting.payload, packet_id, self.version, retain=waiting.old
            )
        )
