"""The quotas that operators give to tenants."""

from __future__ import annotations

from typing import Protocol


class Quotas(Protocol):
    """Knows what tenants may have that is not what every tenant may have."""

    def of_all(self, quota: str) -> dict[int, int]:
        """Return of those tenants that have another one what it is. Raises Unavailable."""
