"""A slice of work that takes long: it ends in its time, or sooner where somebody waits."""

from __future__ import annotations

from collections.abc import Callable

LEAST_PART = 0.25
"""Of a slice is done whoever waits: what was begun to be read is read again in the next one, and
in a partition with hundreds of updates a second somebody always waits."""


def nobody() -> bool:
    """Tell that nobody waits."""
    return False


class Slice:
    """One that begins now."""

    def __init__(
        self,
        clock: Callable[[], float],
        seconds: float,
        is_awaited: Callable[[], bool] = nobody,
    ) -> None:
        """`is_awaited` tells whether somebody waits for what follows it."""
        began = clock()
        self._clock = clock
        self._until = began + seconds
        self._least = began + LEAST_PART * seconds
        self._is_awaited = is_awaited

    def is_over(self) -> bool:
        """Whether others are next."""
        now = self._clock()
        return now >= self._until or (now >= self._least and self._is_awaited())
