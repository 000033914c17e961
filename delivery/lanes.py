"""What is to be offered, in a lane for each tenant that subscribes: lanes go on in turn.

A subscriber has one tenant, so it gets everything in order. A tenant with a hundred thousand
subscribers of one stream waits for itself; another's one is offered its update in the next turn.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

U = TypeVar("U")
S = TypeVar("S")

OFFERS_A_TURN = 16
MOST_WAITING = 100_000
"""Offers that may wait for one tenant: about a second of the loop. Who would get more goes
on elsewhere: from the log where it has a place there, else with another connection."""


class Offering(NamedTuple, Generic[U, S]):
    """One update for all subscribers that a tenant has for it."""

    live: U
    provider: int
    subscribers: deque[S]
    finish: Callable[[], None]
    """Is called when all have been offered it."""
    is_too_much: bool = False
    """So much waits for this tenant already that they are to be closed instead."""


class _Lane(Generic[U, S]):
    def __init__(self) -> None:
        self.offerings: deque[Offering[U, S]] = deque()
        self.waiting = 0


class Lanes(Generic[U, S]):
    """Knows all that is still to be offered."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[int, _Lane[U, S]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many tenants there are for which something waits."""
        return len(self._lanes)

    def add(self, tenant: int, offering: Offering[U, S]) -> None:
        """Let it follow what waits for this tenant."""
        lane = self._lanes.setdefault(tenant, _Lane())
        is_too_much = lane.waiting > MOST_WAITING
        lane.offerings.append(offering._replace(is_too_much=is_too_much))
        lane.waiting += len(offering.subscribers)

    def turn(self) -> Iterator[tuple[Offering[U, S], S]]:
        """Yield the next offers, a few of each tenant."""
        for tenant, lane in list(self._lanes.items()):
            for _ in range(OFFERS_A_TURN):
                if not lane.offerings:
                    break
                offering = lane.offerings[0]
                lane.waiting -= 1
                yield offering, offering.subscribers.popleft()
                if not offering.subscribers:
                    lane.offerings.popleft()
                    offering.finish()
            if not lane.offerings:
                del self._lanes[tenant]
