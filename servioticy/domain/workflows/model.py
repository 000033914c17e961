"""The nouns of workflows (SPSC, section III): atoms, procedures, links, one source, one sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from servioticy.domain.model import StreamRef

SOURCE, SINK = "source", "sink"
"""What links call the beginning and the end; no procedure is called so."""

HTTP, STREAM, COLLECT, NONE = "http", "stream", "collect", "none"
"""Kinds of sources (http, stream) and of sinks (stream, collect, none)."""

MAX_ATOM_BYTES = 32_768
"""Of an atom as JSON. What a procedure makes of one has at most twice as many characters."""
MAX_MADE = 100
"""Atoms that a procedure makes of one."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """Stateless: it makes none, one or several atoms of one."""

    name: str
    code: str
    attempts: int
    """So often an atom is tried before it is a dead letter."""
    delay_ms: int
    """So long an atom waits before it is to be taken."""
    reserved: int
    """Of its tenant's instances so many are for nobody else."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """A checked document. A *step* is a procedure by its number, in an order in which every link
    leads on; the step behind the last procedure is the sink."""

    procedures: Sequence[Procedure]
    """in the order of steps"""
    links: Mapping[str, Sequence[int]]
    """Of the source, and of each procedure, the steps that its atoms go to."""
    source: StreamRef | None
    """The stream whose updates are atoms; None: they come by HTTP."""
    sink: str
    """STREAM, COLLECT or NONE"""
    sink_stream: StreamRef | None = None

    @property
    def sink_step(self) -> int:
        """The number of the step that is the sink."""
        return len(self.procedures)

    @property
    def first_steps(self) -> Sequence[int]:
        """Where atoms of the source go to."""
        return self.links[SOURCE]

    def name_of(self, step: int) -> str:
        """Return what people call a step."""
        return self.procedures[step].name if step < len(self.procedures) else SINK

    def delay_of(self, step: int) -> int:
        """Return how many milliseconds an atom waits before this step may take it."""
        return self.procedures[step].delay_ms if step < len(self.procedures) else 0
