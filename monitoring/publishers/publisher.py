"""The port of what measurements go to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from monitoring.model import Measurement


class Publisher(Protocol):
    """Takes measurements, in one thread. What it raises costs those that it was given.

    One that others would wait for stands behind a queue of its own (`beside.py`).
    """

    def publish(self, measurements: Sequence[Measurement]) -> int | None:
        """Let others know of them; return how many its receiver has refused, if any."""

    def close(self) -> None:
        """Nothing more comes."""
