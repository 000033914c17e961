"""Streams of Service Objects in force, with all that is looked up for their updates, and the
regions in which composites are evaluated (how those are made: `regions.py`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from sandbox import trees
from sandbox.revisions import Revision, revision_of
from servioticy.domain.emissions import Head, head
from servioticy.domain.model import Composite, StreamRef
from servioticy.domain.windowed import FOLLOWING


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
    read_in: tuple[int, ...] = ()
    """The partitions in which others read it."""
    keeper: tuple[int, str] | None = None
    """Of an input from outside: its Service Object, by tenant and id, where that reads its last
    update while something else has triggered it."""
    head: Head = field(init=False)
    """What all that is emitted of it begins with."""
    feeds: KnownStream | None = None
    """Of the windows of a composite stream: that stream. They are stored nowhere, and how their
    computations end is told of it."""
    settles: bool = False
    """Of several arrivals in a tree only the last computes."""
    region: Region | None = None
    """Of a composite: where it is evaluated."""
    crosses: tuple[Entry, ...] = ()
    """The other regions that read it."""
    entries: tuple[Entry, ...] = field(default=())
    """All regions that an update of it which comes from outside enters."""
    revises: bool = field(init=False)
    """Some of what is computed are revisions (`sandbox/revisions.py`)."""

    @property
    def key(self) -> str:
        """Its name in documents and messages."""
        return str(self.ref)

    def __post_init__(self) -> None:
        self.head = head(self.ref, self.tenant, self.version)
        composite = self.composite
        self.revises = composite is not None and (composite.revises or composite.follows)


def is_follower(stream: KnownStream) -> bool:
    """Tell whether it is woken by revisions alone, and brings a composite its inputs."""
    return stream.composite is not None and stream.composite.evaluator == FOLLOWING


def revision_in(stream: KnownStream, document: bytes, path: trees.Path) -> Revision | None:
    """Return which revision this update of the stream is; None: it is none, as nearly all are.

    `path` is the way to it through its tree: whatever comes from outside is none.
    """
    return revision_of(document) if stream.revises and path else None


def is_passing(stream: KnownStream, document: bytes, path: trees.Path) -> bool:
    """Tell whether this update is only sent, and kept nowhere, as what is early is."""
    revision = revision_in(stream, document, path)
    return revision is not None and not revision.is_kept


def takes_back(stream: KnownStream, document: bytes, path: trees.Path) -> bool:
    """Tell whether this update says that the stream's result of its timestamp is none any more."""
    revision = revision_in(stream, document, path)
    return revision is not None and revision.takes_back


def ends_result(windows: KnownStream, document: bytes) -> bool:
    """Tell whether windows say that what their stream has of this timestamp is no result any more.

    So it is then, whatever code makes of what they say.
    """
    if windows.feeds is None or not windows.feeds.revises:
        return False
    if not document:
        return True
    revision = revision_of(document)
    return revision is not None and revision.takes_back


@dataclass(slots=True, eq=False)
class Region:
    """Composites that are evaluated together, and the streams that they read."""

    level: int
    """Regions read only regions of lower levels."""
    tenant: int
    evaluator: str | None
    """None in a knot: each composite has its own."""
    streams: tuple[KnownStream | None, ...]
    """By number. None: nobody knows the stream, so it has no updates."""
    names: tuple[str, ...]
    """Of each composite's code, by number."""
    wiring: trees.Wiring
    leads_on: bool = False
    """Whether other regions read what it makes."""
    keeps: bool = False
    """Whether some of its composites keep entries."""

    def stream(self, number: int) -> KnownStream:
        """The stream of this number, which is one that has updates."""
        stream = self.streams[number]
        if stream is None:
            raise KeyError(number)
        return stream

    def composites(self) -> Iterable[tuple[int, KnownStream]]:
        """Its composites, with their numbers."""
        for number, (stream, node) in enumerate(zip(self.streams, self.wiring.nodes, strict=True)):
            if stream is not None and node.code is not None:
                yield number, stream
