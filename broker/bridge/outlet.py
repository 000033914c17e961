"""Sends a tenant's messages to the broker, below its prefix, and keeps what that has not taken."""

from __future__ import annotations

import asyncio

from broker import mqtt_packets as packets
from broker.client import Parting, Subscription, Taken
from broker.mqtt_outlet import MqttOutlet
from broker.mqtt_packets import Kind
from broker.wire import Wire
from delivery.transport import CLOSE_SECONDS


class BridgeOutlet(MqttOutlet):
    """Keeps to the protocol `Outlet`.

    What is not acknowledged when the connection goes is not sent again under its number, as
    clients of a session do: it comes again from where it waits, which outlives us, too.
    """

    def __init__(self, wire: Wire, above: str, version: int) -> None:
        """`above` stands before every topic."""
        super().__init__(wire)
        self.version = version
        self.ending = ""
        """Why we have ended the connection."""
        self._above = above

    def send(
        self, subscription: Subscription, topic: str, payload: bytes, taken: Taken, *, old: bool
    ) -> None:
        """Send a message, when the broker has acknowledged enough of those before."""
        super().send(subscription, self._above + topic, payload, taken, old=old)

    def close(self, why: str, parting: Parting = Parting.OURS) -> None:  # noqa: ARG002 (no codes)
        """Say goodbye; the session stays."""
        self.ending = self.ending or why
        self._wire.write(packets.packet(Kind.DISCONNECT))
        self._wire.close()
        asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._wire.abort)

    def abort(self) -> None:
        """Cut the connection."""
        self.ending = self.ending or "it takes nothing, or sends more than there is room for"
        super().abort()
