"""What a partition works with: threads, and who brings its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from pipeline.immediate_executor import ImmediateExecutor
from pipeline.state.manifests import AskedPrograms
from pipeline.work import Row

STORING_THREADS = 2
"""One for what has cost much, and one for all else."""


@dataclass(slots=True)
class Means:
    """Without threads everything is done at once, one thing after the other."""

    askers: Executor = field(default_factory=ImmediateExecutor)
    """Ask evaluators; see slots.threads_for."""
    storing: Executor = field(default_factory=ImmediateExecutor)
    """Of `STORING_THREADS`: store and send what is computed late."""
    programs: AskedPrograms = field(default_factory=AskedPrograms)
    """Compute composites for tenants, and are asked once what is to be asked is stored."""
    wake: Callable[[], None] = lambda: None
    """Lets who waits for rows look at what has been answered; called in any thread."""
    arrivals: Callable[[], Sequence[Row]] = tuple
    """Looks at rows that have come and have not been taken yet."""
