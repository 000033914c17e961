"""Sends messages to one STOMP client, and keeps count of those that it has not acknowledged."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from broker.client import MESSAGE_BYTES, Parting, Subscription, Taken
from broker.errors import visible
from broker.stomp_frames import destination_of, write_frame
from broker.wire import Wire
from delivery.transport import CLOSE_SECONDS


class _Unacknowledged(NamedTuple):
    subscription: str
    size: int
    taken: Taken


class StompOutlet:
    """Keeps to the protocol `Outlet`."""

    def __init__(self, wire: Wire) -> None:
        self.destinations: dict[str, str] = {}
        """By subscription, what the client wrote, where messages are to have just that."""
        self.cumulative: set[str] = set()
        """Subscriptions of which an acknowledgement is one of all before, too."""
        self._wire = wire
        self._unacknowledged: dict[str, _Unacknowledged] = {}
        self._kept = 0
        self._last = 0

    def send(
        self, subscription: Subscription, topic: str, payload: bytes, taken: Taken, *, old: bool
    ) -> None:
        """Send a message."""
        self._last += 1
        id_ = str(self._last)
        headers = {
            "destination": self.destinations.get(subscription.name) or destination_of(topic),
            "subscription": subscription.name,
            "message-id": id_,
            "content-type": "application/json",
        }
        if old:
            headers["retain"] = "true"
        if subscription.qos:
            headers["ack"] = id_
            size = len(payload) + len(topic) + MESSAGE_BYTES
            self._kept += size
            self._unacknowledged[id_] = _Unacknowledged(subscription.name, size, taken)
        self._wire.write(write_frame("MESSAGE", headers, payload))
        if not subscription.qos:
            taken(True)

    def acknowledged(self, id_: str) -> None:
        """Note that the client has a message, or all of its subscription up to it."""
        found = self._unacknowledged.get(id_)
        if found is None:
            return
        ids = [id_]
        if found.subscription in self.cumulative:
            for each, other in self._unacknowledged.items():
                if each == id_:
                    break
                if other.subscription == found.subscription:
                    ids.append(each)
        for each in ids:
            done = self._unacknowledged.pop(each)
            self._kept -= done.size
            done.taken(True)

    def forget(self, name: str) -> None:
        """Keep nothing for a subscription that has ended, or has not come about."""
        self.destinations.pop(name, None)
        self.cumulative.discard(name)

    def unsent_bytes(self) -> int:
        """Return what is unsent, and what is not acknowledged."""
        return self._wire.unsent_bytes() + self._kept

    def close(self, why: str, parting: Parting = Parting.OURS) -> None:  # noqa: ARG002  no codes
        """Tell why, and close."""
        self.fail(why)

    def fail(self, why: str, receipt: str | None = None) -> None:
        """Send an ERROR, which is the last frame, and close."""
        headers = {"message": visible(why)}
        if receipt is not None:
            headers["receipt-id"] = receipt
        self._wire.write(write_frame("ERROR", headers))
        self._wire.close()
        asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._wire.abort)

    def abort(self) -> None:
        """Cut the connection."""
        self._wire.abort()

    def gone(self) -> None:
        """Note that the client is gone: it has not got what it has not acknowledged."""
        left = list(self._unacknowledged.values())
        self._unacknowledged.clear()
        self._kept = 0
        for each in left:
            each.taken(False)
