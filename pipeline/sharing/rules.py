"""How one batch is to be computed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from pipeline.limits import Limits
from pipeline.work import LoggedUpdate
from servioticy.domain.borders import MAX_BORDERS, borders
from servioticy.domain.verdicts import HOP_LIMIT, OVER_QUOTA

Refusal: TypeAlias = tuple[str, str]
"""A verdict and its message."""

TOO_FAR: Refusal = HOP_LIMIT, f"more than {MAX_BORDERS} borders between tenants"


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
    """Tenants over a quota: what comes over a border does not wake theirs."""

    def refusal(self, update: LoggedUpdate) -> Refusal | None:
        """Why nobody is woken by what has come over a border.

        By a tenant's own update everybody is: it is made to wait before, or is not accepted.
        """
        if borders(update.roots[0].path) > MAX_BORDERS:
            return TOO_FAR
        return self.refused.get(update.tenant)
