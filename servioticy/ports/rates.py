"""What processes that take updates tell each other of rates: what each has let in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class LetIn(NamedTuple):
    """What a process has let in of a tenant since it told so last."""

    tenant: int
    seconds: tuple[float, ...]
    """Of each rate, in the order of the table of quotas: how many seconds of the tenant's quota
    that is, to a millionth. Negative: more was given back than came."""


class Rates(Protocol):
    """Tells all other processes, and hears them. For one thread."""

    def heard(self, seconds: float) -> list[list[LetIn]] | None:
        """Return what others have told, after so many seconds of silence at most.

        What has nothing in it is from one that has come. None: from now on this process hears
        others, who know of it; what was told before is not heard any more. Raises Unavailable.
        """

    def tell(self, let_in: Sequence[LetIn]) -> None:
        """Tell all that hear. Raises Unavailable, and Rejected where some have heard nothing."""

    def processes(self) -> int:
        """Return how many hear, this one among them. Raises Unavailable."""

    def leave(self) -> None:
        """Hear nothing any more, and be counted no more, until heard() is called again."""
