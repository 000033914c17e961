"""A stream of a Service Object in force, with all that is looked up for its updates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from servioticy.domain.emissions import Head, head
from servioticy.domain.model import Composite, StreamRef

if TYPE_CHECKING:
    from servioticy.domain.regions import Region


class Wake(NamedTuple):
    """An edge: an update of some stream wakes this composite through that input."""

    composite: StreamRef
    input: int


Entry: TypeAlias = "tuple[Region, int]"
"""A region that an update of a stream enters, and the stream's number there."""


@dataclass(slots=True, eq=False)
class KnownStream:
    """A stream that is known here: there is one such object as long as its component is known.

    So it may be compared and looked up by identity.
    """

    ref: StreamRef
    tenant: int
    version: int
    stream_id: int
    """Under which number its updates are stored."""
    composite: Composite | None
    key: str = ""
    """Its name in documents and messages."""
    head: Head = field(init=False)
    """What all that is emitted of it begins with."""
    settles: bool = False
    """Of several arrivals in a tree only the last computes."""
    region: Region | None = None
    """Of a composite: where it is evaluated."""
    crosses: tuple[Entry, ...] = ()
    """The other regions that read it."""
    entries: tuple[Entry, ...] = field(default=())
    """All regions that an update of it which comes from outside enters."""

    def __post_init__(self) -> None:
        self.key = str(self.ref)
        self.head = head(self.ref, self.tenant, self.version)
