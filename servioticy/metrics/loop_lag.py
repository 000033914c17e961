"""How late an event loop is: what somebody in it waits before anything of his is begun."""

from __future__ import annotations

import asyncio

from servioticy.metrics.names import LOOP_LAG
from servioticy.metrics.registry import Registry

TICK_SECONDS = 0.05


class LoopLag:
    """Looks at the running loop twenty times a second, and notes by how much that is too late."""

    def __init__(self, registry: Registry) -> None:
        self._seconds = registry.histogram(LOOP_LAG)
        self._loop = asyncio.get_running_loop()
        self._due = 0.0
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look from now on."""
        self._due = self._loop.time() + TICK_SECONDS
        self._next = self._loop.call_at(self._due, self._tick)

    def stop(self) -> None:
        """Look no more."""
        if self._next is not None:
            self._next.cancel()

    def _tick(self) -> None:
        self._seconds.observe(max(0.0, self._loop.time() - self._due))
        self.start()
