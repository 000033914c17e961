"""What goes wrong with messages, told to the operator without a line for each of them."""

from __future__ import annotations

import asyncio
import logging

SECONDS = 60.0
"""Between two lines."""

log = logging.getLogger("servioticy.delivery")


class Complaints:
    """Logs the first one of an event at once, and then how many there were."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._counts: dict[str, int] = {}
        self._told: dict[str, float] = {}

    def note(self, event: str, **facts: object) -> None:
        """Note that something has happened."""
        now = asyncio.get_running_loop().time()
        self._counts[event] = self._counts.get(event, 0) + 1
        if now - self._told.get(event, -SECONDS) >= SECONDS:
            count = self._counts.pop(event)
            log.warning(event, extra={"prefix": self._prefix, "count": count, **facts})
            self._told[event] = now
