"""How one batch is to be computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from pipeline.limits import Limits
from pipeline.sharing.costs import Pair
from servioticy.domain.verdicts import OVER_QUOTA, OVER_SHARE

Refusal: TypeAlias = tuple[str, str]
"""A verdict and its message."""

ITS_SHARE: Refusal = OVER_SHARE, "its tenant has used its share of time here"
STRANGERS_SHARE: Refusal = (
    OVER_SHARE,
    "composites over others' streams have used their share of time here, its tenant's most of it",
)


def its_quota(name: str) -> Refusal:
    """Return why it is not woken whose tenant has used up a quota."""
    return OVER_QUOTA, f"its tenant has used up its quota of {name}"


class Rules(NamedTuple):
    """How one batch is to be computed."""

    limits: Limits
    alone: bool = False
    """It is one tree, evaluated one step at a time: the limits cut it where the serial order
    does."""
    refused: Mapping[int, Refusal] = MappingProxyType({})
    """Tenants over their share of the partition's time, or a quota: others' updates do not wake
    theirs."""
    over: Set[Pair] = frozenset()
    """Strangers over their part of the share that all of them have, and in whose trees."""
    is_light: Callable[[int, int], bool] = lambda _runner, _owner: False
    """Whether a stranger takes so little of somebody's trees that it need not be cut."""

    @property
    def refuse_somebody(self) -> bool:
        """Whether there is anybody whose composites others' updates do not wake."""
        return bool(self.refused or self.over)

    def refusal(self, tenant: int, owner: int) -> Refusal | None:
        """Why the tenant's composites are not woken in the tree of an update of the owner.

        In that of a tenant's own update nothing of it is refused: it is made to wait before, or
        is not accepted.
        """
        if tenant == owner:
            return None
        strangers = STRANGERS_SHARE if (tenant, owner) in self.over else None
        return self.refused.get(tenant, strangers)
