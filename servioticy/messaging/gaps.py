"""Who else writes to the log: what stands between two of one's own records there."""

from __future__ import annotations

import time
from collections.abc import Callable


class Gaps:
    """Notes the offsets of one's own records, which the broker gives in their order.

    One thread notes; any may ask.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next: dict[int, int] = {}
        """By partition, the offset that a record of ours gets if nobody else appends."""
        self._others_at: dict[int, float] = {}

    def note(self, partition: int, offset: int) -> None:
        """Note that a record of ours is there."""
        expected = self._next.get(partition, offset)
        if offset > expected:
            self._others_at[partition] = self._clock()
        self._next[partition] = offset + 1

    def others_at(self, partition: int) -> float:
        """Return when a record of somebody else's was last met; far in the past if none was."""
        return self._others_at.get(partition, float("-inf"))
