"""What is tried, of whom, and what is read for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from api.stepping.step import Steps
from servioticy.domain.access import Scope
from servioticy.domain.model import LastUpdate, ServiceObject, StreamRef, Timestamp

MOST_UPDATES = 1000
SECONDS = 2.5
"""For both versions together, without the start of a process."""
COMPUTATIONS = 10_000
VERSION_BYTES = 2 * 1024 * 1024
"""Of a version: what its computations made, and what is told of how they ended."""
KEPT_BYTES = 4 * 1024 * 1024
"""Of a version: what its windows keep between two computations."""
STREAMS = 2_000
"""Whose updates are read or made."""
STREAMS_AROUND = 10_000
"""In all documents that are looked at for them: it takes half a second of a step."""
INPUT_BYTES = 4 * 1024 * 1024
"""Of the updates that are played, and as many of those that were there before."""


class Trial(NamedTuple):
    """A changed document, and what stands around it; all of one tenant."""

    caller: int
    scope: Scope
    """What the caller's token is for: no other stream is read or shown."""
    service_object: str
    """The one that is changed."""
    before: Sequence[ServiceObject]
    """It and what may be derived from it, in force."""
    after: Sequence[ServiceObject]
    """The same with the changed document."""
    last: int
    """Updates to be played, at most."""
    hops: int
    """Composites on a path, at most."""
    now: int
    """By the clock, in ms since 1970: until then time goes on behind the last update."""


class Update(NamedTuple):
    """A stored update; one that is not `played` wakes windows alone, and is there to be read."""

    stream: StreamRef
    timestamp: Timestamp
    document: bytes
    played: bool
    is_before: bool = False
    """Its stream's last one before all that is played: so that it is known who has ever sent."""


class Found(NamedTuple):
    """What is stored for a trial."""

    updates: Sequence[Update]
    """Oldest first."""
    lasts: Mapping[StreamRef, LastUpdate]
    """Of each stream what was its last update before them."""
    unread: Sequence[StreamRef]
    """What the caller may not read: as if it had no updates."""
    complete: bool
    """Whether these are as many as are wanted, or all that there are."""
    since: Timestamp | None = None
    """Of this time and before it there may be others; None: there are none."""
    missed: frozenset[StreamRef] = frozenset()
    """Of these there may be others at any time."""


Trials: TypeAlias = Steps[Trial]
"""Where they are computed; those who ask take turns, one step at a time."""
