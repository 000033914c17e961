"""How one batch is to be computed."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from pipeline.limits import Limits


class Rules(NamedTuple):
    """How one batch is to be computed."""

    limits: Limits
    alone: bool = False
    """It is one tree, evaluated one step at a time: the limits cut it where the serial order
    does."""
    refused: Set[int] = frozenset()
    """Tenants over their share of the partition's time: others' updates do not wake theirs."""

    def refuses(self, tenant: int, owner: int) -> bool:
        """Whether the tenant's composites are not woken in the tree of an update of the owner.

        In that of a tenant's own update nothing of it is refused: it is made to wait before.
        """
        return tenant in self.refused and tenant != owner
