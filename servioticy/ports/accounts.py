"""What streams have used: whose account it is in, and which stream has caused it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

from servioticy.domain.model import StreamRef

UseKey: TypeAlias = tuple[int, StreamRef, int, StreamRef]
"""Whose account something is in, of which stream, and which stream of whom has caused it."""


UNNAMED = StreamRef("", "")
"""What has caused something, where that is the tenant's own, or is not told apart."""


class Use(NamedTuple):
    """What a stream has used since: what was stored of it, and how its computations ended.

    Those that a stream of the provider has woken, and what came of them.
    """

    tenant: int
    stream: StreamRef
    """by name: what was used is to be paid when the stream is gone"""
    provider: int
    source: StreamRef = UNNAMED
    """which of the provider's, where that is another tenant"""
    updates: int = 0
    """that came from outside"""
    rows: int = 0
    bytes: int = 0
    computations: Mapping[str, int] = MappingProxyType({})
    """by verdict"""
    replaced: int = 0
    """bytes of updates that these have taken the place of, less those of what is kept instead"""
    microseconds: int = 0
    """of processor time of its code"""


class StreamAccounts(Protocol):
    """The part of the PartitionStore that keeps what was used."""

    def account(self, uses: Sequence[Use]) -> None:
        """Add to the present hour's account, and to the processor time of streams still there.

        Tenants that are gone are left out.
        """

    def used_up(self, most: Mapping[str, int]) -> Mapping[int, str]:
        """Return which tenants have used up one of these quotas, and which one.

        `most` tells of each of `RESTING` what a tenant may have of which nothing else is said.
        """
