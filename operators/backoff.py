"""When to look again: the linear back-off of the paper's algorithm 1, ending in a blocking read.

A loop that has had nothing to do looks again after one step, then two, then three: what comes
meanwhile goes together. The paper's step is 1 ns and it never blocks; after so many steps without
anything we do, so who is idle takes nothing of the processor.
"""

from __future__ import annotations

STEP_SECONDS = 0.000_1
STEPS = 5


class Backoff:
    """Says how long to wait."""

    def __init__(self, step_seconds: float = STEP_SECONDS, steps: int = STEPS) -> None:
        self._step_seconds = step_seconds
        self._steps = steps
        self._idle = 0

    def worked(self) -> None:
        """Begin anew: there was something to do."""
        self._idle = 0

    def seconds(self) -> float | None:
        """How long to sleep now that there is nothing to do; None: until something comes."""
        if self._idle >= self._steps:
            return None
        self._idle += 1
        return self._idle * self._step_seconds
