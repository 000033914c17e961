"""What waits for a feed's receiver, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection

from delivery.feeds.deliveries import Delivery
from delivery.handover import size
from servioticy.domain.model import StreamRef


class Waiting:
    """A queue of deliveries that knows how many bytes it holds."""

    def __init__(self) -> None:
        self.bytes = 0
        self._queue: deque[Delivery] = deque()
        self._something = asyncio.Event()

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._queue)

    def put(self, delivery: Delivery) -> None:
        """Add one at the end."""
        self._queue.append(delivery)
        self.bytes += size(delivery.update)
        self._something.set()

    def pop(self) -> Delivery:
        """Take the first one."""
        delivery = self._queue.popleft()
        self.bytes -= size(delivery.update)
        return delivery

    def clear(self) -> None:
        """Let go of all."""
        self._queue.clear()
        self.bytes = 0

    def forget(self, streams: Collection[StreamRef]) -> None:
        """Let go of those of these streams."""
        self._queue = deque(each for each in self._queue if each.stream not in streams)
        self.bytes = sum(size(each.update) for each in self._queue)

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._something.set()

    async def woken(self) -> None:
        """Return when something has come since, or somebody is to look."""
        self._something.clear()
        await self._something.wait()
