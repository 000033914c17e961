"""The quotas that operators give to tenants, and who has used one up."""

from __future__ import annotations

from typing import Protocol

from servioticy.domain.quotas import Exceeded, Quota


class Quotas(Protocol):
    """Knows what tenants may have that is not what every tenant may have."""

    def of_all(self, quota: str) -> dict[int, int]:
        """Return of those tenants that have another one what it is. Raises Unavailable."""

    def used_up(self, quota: Quota) -> dict[int, Exceeded]:
        """Return the tenants that have used up their deliveries or processor time of this hour,
        each with its own quota; `quota` is that of a tenant of which nothing else is said. Raises
        Unavailable.
        """
