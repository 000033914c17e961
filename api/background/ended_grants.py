"""Grants end when they expire: in the log, as those do that are revoked."""

from __future__ import annotations

from api.services import Services


class EndedGrants:
    """Ends them, some at a time. For one thread."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def turn(self) -> bool:
        """End some; False: there are none. Raises Unavailable."""
        return self._services.ports.changes.end_expired(self._services.now())
