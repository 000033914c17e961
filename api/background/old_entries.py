"""Entries of the audit log go when they are old enough."""

from __future__ import annotations

import time
from collections.abc import Callable

from api.services import Services

AT_ONCE = 1_000
PAUSE_SECONDS = 60.0
"""Between two looks that found nothing."""


class OldEntries:
    """Removes them, some at a time. For one thread."""

    def __init__(
        self, services: Services, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._sql = services.ports.statements("audit")
        self._days = services.settings.requests.audit_days
        self._monotonic = monotonic
        self._next = 0.0

    def turn(self) -> bool:
        """Remove some; False: there are none, or it is too early."""
        if self._monotonic() < self._next:
            return False
        gone = len(self._sql.rows("forget", days=self._days, most=AT_ONCE))
        if gone < AT_ONCE:
            self._next = self._monotonic() + PAUSE_SECONDS
        return gone == AT_ONCE
