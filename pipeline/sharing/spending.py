"""What a piece has cost so far: trees of one tenant, against what it may use."""

from __future__ import annotations

from pipeline.errors import BatchTooLarge
from pipeline.limits import MAX_BATCH_BYTES, MAX_BATCH_COMPUTATIONS, Limits
from sandbox import ProcessorSeconds

BYTES_A_COMPUTATION = 1024
"""To store and emit so many is as much work as another computation."""


class Spending:
    """The costs of one piece."""

    def __init__(self, limits: Limits, updates: int, size: int = 0) -> None:
        """Of so many updates, which are so many bytes."""
        self._limits = limits
        self.updates = updates
        self.work = updates + size / BYTES_A_COMPUTATION
        """Updates, computations, and verdicts of what was not computed."""
        self.computations = 0
        self.bytes = 0
        """Of documents to store."""
        self.seconds = 0.0
        """Of waiting for scripts."""
        self.processor = 0.0
        """Seconds for all computations, without what was there to be ready for them."""
        self.preparing = 0.0
        """The same for that: starts of processes, programs made ready."""

    def ran(self, waited: float, used: ProcessorSeconds, ours: float) -> None:
        """Note that trees were grown, for which it was waited so long.

        `ours` is what it took of the processor in the thread that asked.
        """
        self.seconds += waited
        self.processor += used.programs + ours
        self.preparing += used.starts + used.preparing

    def count(self, computations: int, size: int = 0) -> None:
        """Note computations, and the bytes of what they made.

        Raises BatchTooLarge where several trees have too many together.
        """
        self.work += computations + size / BYTES_A_COMPUTATION
        self.computations += computations
        self._check()

    def add_bytes(self, size: int) -> None:
        """Note documents to store. Raises BatchTooLarge as the other does."""
        self.bytes += size
        self._check()

    def refuse(self, verdicts: int) -> None:
        """Note that composites were not computed, and what is told of that."""
        self.work += verdicts

    @property
    def seconds_left(self) -> float:
        """How long scripts may still take."""
        return self._limits.tree_seconds - self.seconds

    def _check(self) -> None:
        if self.updates > 1 and is_too_much(self.computations, self.bytes):
            raise BatchTooLarge


def is_too_much(computations: int, size: int) -> bool:
    """Whether that is more than one transaction may have of several trees."""
    return computations > MAX_BATCH_COMPUTATIONS or size > MAX_BATCH_BYTES
