"""Applications' wishes to have a stream's updates sent to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from servioticy.domain.access import Resource
from servioticy.domain.model import StreamKey


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """A wish that the API has checked. `document` is what the API shows of it."""

    id: str
    tenant: int
    stream: StreamKey
    callback: str
    destination: str
    document: bytes
    created_at: int


class Subscription(NamedTuple):
    """A wish: whose it is, whose the stream, and the document."""

    tenant: int
    stream_owner: int
    document: bytes

    @property
    def resource(self) -> Resource:
        """It belongs to the one who made it, and to the one whose stream it is."""
        return Resource((self.tenant, self.stream_owner))


class Subscriptions(Protocol):
    """Stores subscriptions."""

    def subscribe(self, new: NewSubscription) -> bool:
        """Store a subscription; False where the same pubsub one exists already."""

    def of_stream(self, stream: StreamKey) -> list[Subscription]:
        """The subscriptions to a stream, everybody's, oldest first."""

    def subscription(self, id_: str) -> Subscription | None:
        """A subscription, whosever it is, or None."""

    def unsubscribe(self, tenant: int, id_: str) -> None:
        """Drop a subscription of that tenant."""
