"""What a tenant may still send of one thing in this second, and what of it others do not know."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(slots=True)
class Allowance:
    """A bucket that holds what comes in a second, and is filled at that rate.

    It is in debt, below 0, after something larger than it, and where others have let in more than
    was there.
    """

    most: int
    """what the quota gives in a second"""
    left: float
    at: float
    """when so much was left"""
    untold: float = 0.0
    """what was let in here and nobody else knows of, in seconds of the quota"""
    spilled: float = 0.0
    """what came while it was full, in seconds of the quota: others may have let that in"""

    def fill(self, most: int, now: float) -> None:
        """Let come what has come since; another quota may have been given.

        It is as full then as before, but nobody has to make up for more than was let in.
        """
        if most != self.most:
            scaled = self.left * most / self.most if self.most else 0.0
            self.left = scaled if scaled > 0 else max(scaled, self.left)
            self.most = most
        full = self.left + most * (now - self.at)
        self.left, self.at = min(most, full), now
        if most:
            self.spilled += (full - self.left) / most

    def wait(self, amount: int) -> float:
        """Return in how many seconds so much may come: 0 now, infinity never."""
        if self.most == 0:
            return math.inf
        # What is larger than a full bucket may come when it is full.
        return max(0.0, (min(amount, self.most) - self.left) / self.most)

    def take(self, amount: int) -> None:
        """So much comes; a negative amount did not come after all."""
        self.left -= amount

    def hear(self, seconds: float, old: float) -> None:
        """Another process has let in so many seconds of the quota, or given them back.

        That was up to `old` seconds ago, so it is taken first from what has spilled over since.
        """
        self.spilled = min(self.spilled, old)
        from_there = max(0.0, min(self.spilled, seconds))
        self.spilled -= from_there
        self.left -= (seconds - from_there) * self.most
