"""What the supervisor counts: which programs run, and how often they were started."""

from __future__ import annotations

from servioticy.metrics import Registry
from servioticy.metrics.names import PROGRAM_STARTS, PROGRAM_UP
from servioticy.supervisor.program import Event


class ProgramMetrics:
    """The metrics of all programs of a supervisor."""

    def __init__(self, registry: Registry) -> None:
        self._up = registry.gauge(PROGRAM_UP)
        self._starts = registry.counter(PROGRAM_STARTS)

    def note(self, event: Event) -> None:
        """Count what happened to a program."""
        if event.kind == "starting":
            self._starts.labels(event.program).inc()
        self._up.labels(event.program).set(event.kind == "ready")
