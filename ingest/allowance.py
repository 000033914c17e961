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

    def fill(self, most: int, now: float) -> None:
        """Let come what has come since; after another quota was given it is as full as before."""
        if most != self.most:
            self.left = self.left * most / self.most if self.most else 0.0
            self.most = most
        self.left = min(most, self.left + most * (now - self.at))
        self.at = now

    def wait(self, amount: int) -> float:
        """Return in how many seconds so much may come: 0 now, infinity never."""
        if self.most == 0:
            return math.inf
        # What is larger than a full bucket may come when it is full.
        return max(0.0, (min(amount, self.most) - self.left) / self.most)

    def take(self, amount: int) -> None:
        """So much comes; a negative amount did not come after all."""
        self.left -= amount

    def hear(self, seconds: float, debt: float) -> None:
        """Another process has let in so many seconds of the quota, or given them back.

        That puts it into debt by so many seconds at most.
        """
        lowest = min(self.left, -debt * self.most)
        self.left = min(self.most, max(lowest, self.left - seconds * self.most))
