"""What every partition of a worker computes with."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pipeline.aspects import STAGES, Stages
from pipeline.errors import ProgressLost
from pipeline.limits import BACKLOG, IDLE_SECONDS, NO_LIMITS, Limits
from servioticy.domain.evaluators.evaluator import Evaluators
from servioticy.errors import Fenced, Unavailable


@dataclass(frozen=True, slots=True)
class Engine:
    """The evaluators and the stages, and how much they are given at once."""

    evaluators: Evaluators
    max_updates: int
    """Updates of one batch."""
    remembered_bytes: int
    """Last updates that are remembered, of each partition."""
    limits: Limits = NO_LIMITS
    stages: Stages = STAGES
    heals: tuple[type[Exception], ...] = (Unavailable,)
    """Errors after which the same is tried again, as waiting heals them."""
    sleep: Callable[[float], None] = time.sleep
    processors: int = field(default_factory=lambda: os.cpu_count() or 1)
    """So many evaluators are asked at once."""
    clock: Callable[[], float] = time.monotonic
    """Seconds."""
    now: Callable[[], float] = time.time
    """Seconds since 1970, by which times come that composites have set themselves: as records of
    the log. Nothing is computed by it."""
    idle_seconds: float = IDLE_SECONDS
    """What a partition has not used for so long it forgets."""
    end_idle: Callable[[], int] = lambda: 0
    """Forgets what evaluators keep ready for who has been silent for long; returns how many."""

    @property
    def backlog(self) -> int:
        """So many records at once have not just come."""
        return min(BACKLOG, self.max_updates)

    @property
    def passes(self) -> tuple[type[Exception], ...]:
        """Errors that no record is to blame for: what heals, and what ends the task."""
        return (*self.heals, Fenced, ProgressLost)
