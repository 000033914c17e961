"""What a composite stream's window is, as its document chose it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["tumbling", "hopping", "sliding", "session", "count", "global"]
Time: TypeAlias = Literal["event", "arrival"]
"""By which time updates are cut: their own `lastUpdate`, or the log's."""
Revisions: TypeAlias = Literal["accumulate", "retract", "discard"]
"""What comes of a window once more: all of it, that behind what it told before, or what is new."""
Unit: TypeAlias = Literal["milliseconds", "days", "months"]

DEFAULT_IDLE = 60_000
"""Milliseconds: a minute."""


@dataclass(frozen=True, slots=True)
class Length:
    """How long a window is: milliseconds, or days or months of a calendar.

    A day of a calendar has 23, 24 or 25 hours, as the clocks of its timezone go.
    """

    amount: int
    unit: Unit = "milliseconds"


@dataclass(frozen=True, slots=True)
class Uses:
    """What the code of a stream asks of its windows; what nobody asks for is not kept."""

    sketches: bool = False
    """Quantiles."""
    updates: bool = False
    """The updates themselves."""
    by: tuple[str, ...] = ()
    """The channels by whose values there are aggregates."""


@dataclass(frozen=True, slots=True)
class Fold:
    """What a document does with each update of a window, in place of aggregates or beside them."""

    code: str
    """A function of the state, and of inputs as they stand with the update."""
    inputs: tuple[str, ...]
    """The names of those."""


@dataclass(frozen=True, slots=True)
class Window:
    """How the inputs of a stream are cut. Durations are in milliseconds."""

    kind: Kind
    size: Length | None = None
    """Of tumbling, hopping and sliding ones."""
    every: Length | None = None
    """From the beginning of one hopping window to that of the next."""
    offset: int = 0
    """How much later windows begin than they would; with a calendar by its clocks."""
    gap: int | None = None
    """So long without an update ends a session."""
    max: int | None = None
    """The longest that a session may be."""
    count: int | None = None
    """How many updates a window of kind count holds."""
    every_count: int | None = None
    """After how many updates there is one."""
    timezone: str | None = None
    """Whose calendar days and months are of, by its name in the IANA's database; None: UTC."""
    time: Time = "event"
    delay: int = 0
    """How much the watermark is behind the newest timestamps."""
    idle: int = DEFAULT_IDLE
    """After how long a silent input no longer holds the watermark back."""
    early: int | None = None
    """How often the results of windows that have not ended come out, by the log's time; 0: with
    each update, None: never."""
    lateness: int = 0
    """How long after its end a window still takes updates in, by the watermark."""
    revisions: Revisions = "accumulate"
    uses: Uses = Uses()
    fold: Fold | None = None
    when: str | None = None
    """An expression over the windows: a result comes out early when it becomes true."""

    @property
    def revises(self) -> bool:
        """Whether one window may have several results."""
        return self.early is not None or self.lateness > 0


@dataclass(frozen=True, slots=True)
class Silence:
    """A stream's code is told which of its inputs have been silent for long."""

    after: int
    """Milliseconds without an update."""
