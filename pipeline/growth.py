"""What the stages hand to each other: trees on their way through regions, and what comes of them.

The *place* of an update in the serial order is the offset of the record that its tree grows
from, its depth in the tree, and its path through it. Places of a tree compare as breadth
first goes, whatever the scripts decide. A tree is of one tenant; what comes over a border goes
on from its place in the provider's tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple, TypeAlias

from sandbox.trees import Call, Event, Path, Tree
from servioticy.domain.known_streams import KnownStream, Region
from servioticy.domain.model import LastUpdate, Timestamp
from servioticy.ports.kept_entries import KeptValue
from servioticy.ports.put_off import TreeKey

NewUpdate: TypeAlias = tuple[KnownStream, Timestamp, bytes, Path, bytes | None]
"""An update that this batch stores: stream, timestamp, document, path through its tree, and
the state of the stream's evaluator with it, if there is one. At the empty path it came from
outside. A plain tuple: there are many."""

KeptEntry: TypeAlias = tuple[KnownStream, bytes, bytes | None, int | None, int]
"""What a composite keeps: stream, key, value or nothing, when it is due, and by how many bytes
that is more than before."""

Keys: TypeAlias = Sequence[tuple[KnownStream, bytes]]
"""Of composites, what they keep is to be known."""

Keeping: TypeAlias = Mapping[KnownStream, Mapping[bytes, KeptValue | None]]
"""What is kept under the keys that are known."""

Entered: TypeAlias = Mapping[Region, Mapping[int, list[Event]]]
"""What comes into regions of one level: of each tree, by its number in the batch."""


NewRow: TypeAlias = tuple[KnownStream, Timestamp, bytes, TreeKey, int, Path]
"""A new update as it is to be stored, unless it is early, and sent: stream, timestamp, document,
which tree it is of, number in that, and path."""


class Finished(NamedTuple):
    """What a batch is to store."""

    rows: Sequence[NewRow]
    """In the serial order."""
    last_updates: Mapping[KnownStream, LastUpdate]
    """Those that are other ones than before."""
    inputs: Mapping[KnownStream, LastUpdate]
    """The same of inputs from outside that are kept."""
    repeating: Set[KnownStream]
    """Streams with an update that is not newer than their last one was at its place."""
    kept: Sequence[KeptEntry] = ()
    """What composites keep otherwise than before."""
    gone: Sequence[NewRow] = ()
    """Results that windows have taken back, as they were, where code has made nothing of that."""


class Entering(NamedTuple):
    """The trees that a region is to grow, in order of the log."""

    region: Region
    numbers: Sequence[int]
    """Of each tree, its number in the batch."""
    trees: Sequence[Tree]


class StateLacking(Exception):
    """What composites keep under these keys has to be known before their trees can be grown."""

    def __init__(self, keys: Keys) -> None:
        super().__init__(f"{len(keys)} entries have to be known")
        self.keys = keys


class Asked(NamedTuple):
    """What is asked of a region's evaluator."""

    region: Region
    numbers: Sequence[int]
    call: Call
    most_bytes: int
    """Of what the region makes of one tree."""


class RegionOutput(NamedTuple):
    """What a region has made of a tree."""

    region: Region
    number: int
    updates: Sequence[NewUpdate]
    kept: Sequence[KeptEntry] = ()
    """What its composites keep otherwise than before, with the last of all trees."""


class Verdict(NamedTuple):
    """How computations of a composite ended that ended alike."""

    composite: KnownStream
    kind: str
    trigger: KnownStream
    timestamp: Timestamp
    """Of the trigger."""
    message: str = ""
    inputs: Sequence[Timestamp | None] | None = None
    """The timestamp of each input that it had; None where there was no update yet, and in all
    where it came to no inputs."""
    times: int = 1
    """How many computations ended so; all else is told of the last of them."""
