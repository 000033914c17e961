"""Pings of one client: answered at once, and those that come in between together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

SECONDS = 0.5
"""Between two answers."""


class Pings:
    """Answers a client, and not as often as it likes."""

    def __init__(self, answer: Callable[[], None]) -> None:
        self._answer = answer
        self._next: asyncio.TimerHandle | None = None
        self._is_owed = False

    def came(self) -> None:
        """Answer, at once or soon."""
        if self._next is not None:
            self._is_owed = True
            return
        self._answer()
        self._next = asyncio.get_running_loop().call_later(SECONDS, self._later)

    def stop(self) -> None:
        """Answer no more."""
        if self._next is not None:
            self._next.cancel()

    def _later(self) -> None:
        self._next = None
        if self._is_owed:
            self._is_owed = False
            self.came()
