"""What tenants have used."""

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


class Usage(Protocol):
    """Keeps what was delivered."""

    def deliver(self, counted: Mapping[Given, int]) -> None:
        """Add to the present hour's account. Raises Unavailable."""
