"""The port of what measurements go to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from monitoring.model import Measurement


class Publisher(Protocol):
    """Takes measurements, in one thread. What it raises costs those that it was given."""

    def publish(self, measurements: Sequence[Measurement]) -> None:
        """Let others know of them."""

    def close(self) -> None:
        """Nothing more comes."""
