"""What processes that clients are connected to tell each other of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

Row = Sequence[int | str]

COME = "come"
"""The kind of what is told by who hears from now on, and knows nothing of what was told before."""


class Told(NamedTuple):
    """What a process has told."""

    process: int
    """A number of chance that it has as long as it runs."""
    fence: int
    """A larger number than that of whatever was told and seen before."""
    kind: str
    rows: list[Row]


class Peers(Protocol):
    """Tells all other processes, and hears them. `heard` and `others` are of one thread."""

    def heard(self, seconds: float) -> list[Told] | None:
        """Return what others have told, after so many seconds of silence at most.

        None: from now on this process hears others, who are told that it has come; what was told
        before is not heard any more. Raises Unavailable.
        """

    def others(self) -> frozenset[int]:
        """Return which other processes hear now. Raises Unavailable."""

    def tell(self, kind: str, rows: Sequence[Row]) -> int:
        """Tell all others; return the fence. Raises Unavailable, and Rejected where some have
        heard nothing for long."""
