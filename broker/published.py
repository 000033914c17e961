"""What clients publish."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from broker.outcomes import Outcome


class Published(NamedTuple):
    """A message that a client has sent."""

    topic: str
    payload: bytes
    is_promise: bool
    """Whether the client wants to know that it is safe."""
    answered: Callable[[Outcome], None]
