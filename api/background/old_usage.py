"""What tenants have used is forgotten when it is old enough."""

from __future__ import annotations

from api.services import Services

EVERY_MS = 600_000
AT_ONCE = 10_000
"""Hours of streams; a statement takes some tens of milliseconds for them."""


class OldUsage:
    """Forgets some of it, now and then. For one thread."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._sql = services.ports.statements("usage")
        self._next = 0

    def turn(self) -> bool:
        """Forget some; False: there is none, or it is too early. Raises Unavailable."""
        now = self._services.now()
        if now < self._next:
            return False
        kept = self._services.settings.usage.days * 86_400_000
        gone = max(
            len(self._sql.rows(each, before=now - kept, most=AT_ONCE))
            for each in ("forget", "forget_grants")
        )
        if gone < AT_ONCE:
            self._next = now + EVERY_MS
        return gone == AT_ONCE
