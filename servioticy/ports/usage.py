"""What tenants have used of delivery."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class Given(NamedTuple):
    """To whom updates of what stream were given."""

    receiver: int
    """tenant"""
    provider: int
    """the stream's tenant"""
    service_object: str
    stream: str


class Spent(NamedTuple):
    """Whose code took processor time, and for which stream."""

    tenant: int
    service_object: str
    stream: str


class Usage(Protocol):
    """Keeps what was delivered, and what that took of the processor."""

    def deliver(self, counted: Mapping[Given, int]) -> None:
        """Add to the present hour's account. Raises Unavailable."""

    def spend(self, spent: Mapping[Spent, int]) -> None:
        """Add microseconds of processor time to the same. Raises Unavailable."""
