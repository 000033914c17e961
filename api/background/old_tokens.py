"""Tokens go some days after their end."""

from __future__ import annotations

import time
from collections.abc import Callable

from api.services import Services

KEPT_DAYS = 7
AT_ONCE = 1_000
PAUSE_SECONDS = 60.0
"""Between two looks that found few."""


class OldTokens:
    """Removes them, some at a time. For one thread."""

    def __init__(
        self, services: Services, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._sql = services.ports.statements("tokens")
        self._monotonic = monotonic
        self._next = 0.0

    def turn(self) -> bool:
        """Remove some; False: there are no more, or it is too early."""
        if self._monotonic() < self._next:
            return False
        gone = len(self._sql.rows("forget", days=KEPT_DAYS, most=AT_ONCE))
        if gone < AT_ONCE:
            self._next = self._monotonic() + PAUSE_SECONDS
        return gone == AT_ONCE
