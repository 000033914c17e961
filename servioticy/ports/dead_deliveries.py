"""What receivers would not take, and why they take nothing at all."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from servioticy.domain.model import LastUpdate, StreamRef


class DeadDelivery(NamedTuple):
    """An update that a receiver has refused for good."""

    id: str
    """The delivery's, which stays when it is delivered once more."""
    stream: StreamRef
    update: LastUpdate


class Trouble(NamedTuple):
    """Why a receiver takes nothing."""

    since_ms: int
    attempts: int
    status: int
    """Of the last answer; 0: there was none."""
    reason: str


class DeadDeliveries(Protocol):
    """Keeps them, of each subscription the newest. Every call may raise Unavailable."""

    def bury(
        self, tenant: int, subscription: str, dead: DeadDelivery, reason: str, now_ms: int
    ) -> None:
        """Keep an update; the oldest ones go where there are too many."""

    def to_redrive(self, tenant: int, subscription: str) -> list[DeadDelivery]:
        """Return some of those that are to be delivered once more, the oldest first."""

    def revived(self, tenant: int, subscription: str, delivery: str) -> None:
        """Note that the receiver has taken it after all."""

    def trouble(
        self, tenant: int, subscription: str, trouble: Trouble | None, *, stop: bool = False
    ) -> None:
        """Note why nothing is taken, None: it is again; or `stop` to deliver altogether."""
