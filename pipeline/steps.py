"""What the stages hand to each other: steps at composite streams, and what comes of them.

A *place* is a moment of the serial order: the offset of the source update in the log, the
depth in its execution tree, and the path through it (for each hop, which of the subscribers
it was). Places compare as breadth first goes, whatever the scripts decide. So composites can
be evaluated one after the other, each for the whole batch: an input is read as it stood at
the reader's place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from sandbox.program import Call
from servioticy.domain.model import SensorUpdate, StreamRef, Timestamp


class Place(NamedTuple):
    """A moment of the serial order; places compare by offset, then depth, then path."""

    offset: int
    depth: int = 0
    path: tuple[int, ...] = ()


class NewUpdate(NamedTuple):
    """An update that this batch stores, and its place: at depth 0 it is raw, else derived."""

    place: Place
    update: SensorUpdate
    uses: bytes | None = None
    """The sources of a derived one, where its stream's staleness is that of its inputs."""


NewUpdates: TypeAlias = Mapping[StreamRef, Sequence[NewUpdate]]
"""New updates by their stream, those of each in order of place."""

Kind: TypeAlias = Literal["arrival", "direct write"]
ARRIVAL: Kind = "arrival"
DIRECT_WRITE: Kind = "direct write"


class Step(NamedTuple):
    """One thing that happens at a composite stream.

    An *arrival* is an update that reaches the composite through one of its inputs and may
    make it compute. A *direct write* is an update of the composite itself that came from
    outside: from its place on it is the last output.
    """

    place: Place
    composite: StreamRef
    kind: Kind
    update: SensorUpdate
    input: int = -1
    """The number of the input that an arrival comes through."""

    @property
    def timestamp(self) -> Timestamp:
        """The timestamp of what happens."""
        return self.update.timestamp


Round: TypeAlias = Mapping[StreamRef, list[Step]]
"""The composites that are evaluated next, each with its steps in order of place."""


class PendingStep(NamedTuple):
    """A step of a fold, and the timestamps of what it is given."""

    step: Step
    inputs: tuple[Timestamp | None, ...] = ()
    uses: bytes | None = None
    """The sources of its output, where the composite's staleness is that of its inputs."""


class Fold(NamedTuple):
    """All steps of one composite in a round, as one call of the sandbox."""

    composite: StreamRef
    tenant: int
    steps: Sequence[PendingStep]
    call: Call


class Verdict(NamedTuple):
    """How a computation ended, or several that ended alike."""

    place: Place
    composite: StreamRef
    kind: str
    trigger: SensorUpdate
    message: str = ""
    inputs: Sequence[Timestamp | None] = ()
    """The timestamp of each input that it had; None where there was no update yet."""
    times: int = 1
    """How many computations ended so; all else is told of the last of them."""
