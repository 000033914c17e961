"""What waits for a feed's receiver, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence

from delivery.feeds.deliveries import Delivery
from delivery.handover import size
from servioticy.domain.model import StreamRef


def _nobody() -> None:
    """Nobody is told."""


class Waiting:
    """A queue of deliveries that knows how many bytes it holds.

    There may be a million of them of which few hold anything: an empty one is small.
    """

    __slots__ = ("_queue", "_waits", "bytes", "tell")

    def __init__(self) -> None:
        self.bytes = 0
        self.tell: Callable[[], None] = _nobody
        """Is called when something has come, or somebody is to look."""
        self._queue: deque[Delivery] | None = None
        self._waits: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._queue) if self._queue else 0

    def put(self, delivery: Delivery) -> None:
        """Add one at the end."""
        if self._queue is None:
            self._queue = deque()
        self._queue.append(delivery)
        self.bytes += size(delivery.update)
        self.wake()

    def pop(self) -> Delivery:
        """Take the first one. Raises IndexError where there is none."""
        if not self._queue:
            raise IndexError("nothing waits")
        delivery = self._queue.popleft()
        if not self._queue:
            self._queue = None
        self.bytes -= size(delivery.update)
        return delivery

    def clear(self) -> None:
        """Let go of all."""
        self._queue = None
        self.bytes = 0

    def forget(self, streams: Collection[StreamRef]) -> None:
        """Let go of those of these streams."""
        left: Sequence[Delivery] = [
            each for each in self._queue or () if each.stream not in streams
        ]
        self._queue = deque(left) if left else None
        self.bytes = sum(size(each.update) for each in left)

    def wake(self) -> None:
        """Let whoever waits look again."""
        waits, self._waits = self._waits, None
        if waits is not None and not waits.done():
            waits.set_result(None)
        self.tell()

    async def woken(self) -> None:
        """Return when something has come since, or somebody is to look."""
        if self._waits is None or self._waits.done():
            self._waits = asyncio.get_running_loop().create_future()
        await self._waits
