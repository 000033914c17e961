"""Tenants and their tokens."""

from __future__ import annotations

from typing import Protocol


class Tenants(Protocol):
    """Who owns Service Objects, and by which tokens they are known."""

    def create_tenant(self, name: str) -> str:
        """Make the tenant unless it exists, and a new token for it, which is returned.

        Raises Rejected while a tenant of that name is being deleted.
        """

    def tenant_of(self, token: str) -> int | None:
        """Return whose token it is, or None."""

    def delete_tenant(self, name: str) -> bool:
        """Let nobody of the tenant in from now on, and all of its go; False: there is none."""
