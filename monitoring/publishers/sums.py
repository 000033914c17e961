"""Measurements as metrics: how many steps of each purpose, and how long they took together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from monitoring.model import Measurement, RuntimePerformance

MOST = 200
"""Purposes that are told apart: each is a time series in Prometheus."""
OTHERS = "others"
Labels = tuple[str, ...]


class Sums:
    """Counts for as long as the process lives, whichever configuration says so."""

    def __init__(self) -> None:
        self._steps: dict[Labels, float] = defaultdict(float)
        self._seconds: dict[Labels, float] = defaultdict(float)

    def publish(self, measurements: Sequence[Measurement]) -> None:
        """Add those that have a start and an end, and are told for themselves."""
        for each in measurements:
            if not isinstance(each, RuntimePerformance) or each.for_links:
                continue
            if each.start is not None and each.end:
                purpose = (each.node.node_purpose,)
                if purpose not in self._steps and len(self._steps) >= MOST:
                    purpose = (OTHERS,)
                self._steps[purpose] += 1
                self._seconds[purpose] += (each.end - each.start) / 1e9

    def close(self) -> None:
        """Counters do not go down."""

    def steps(self) -> Mapping[Labels, float]:
        """Return how many, by purpose; for another thread."""
        return dict(self._steps)

    def seconds(self) -> Mapping[Labels, float]:
        """Return how long they took, by purpose; for another thread."""
        return dict(self._seconds)
