"""What one transaction stores of a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from servioticy.domain.model import StreamRef, Timestamp
from servioticy.ports.borders import Crossing, OutsideReader, StoredInput
from servioticy.ports.effects import Effect
from servioticy.ports.kept_entries import StoredEntry
from servioticy.ports.put_off import PutOff, TreeKey


class StoredUpdate(NamedTuple):
    """A row of the history."""

    tenant: int
    stream_id: int
    timestamp: Timestamp
    document: bytes
    version: int
    offset: int
    position: int
    is_new: bool = False
    """Whether it is certain that the stream has no update of this timestamp yet.

    So it is where the timestamp is newer than the stream's last update was. Such rows are
    stored a good deal faster; if it is not so after all, the row overwrites as any other.
    """
    tree: int = 0
    """as of a TreeKey"""
    takes_back: bool = False
    """Whether the row of this timestamp goes instead, and this one is kept until it is emitted,
    where it is sent.

    Where nothing is newer it stays the stream's last update, from which is computed."""
    ends_taken_back: bool = False
    """Whether its stream may have such a one: where that is no newer, it is kept no longer."""
    is_sent: bool = True
    """Whether subscribers get it: of what is taken back without a word nothing is emitted."""


class StoredState(NamedTuple):
    """What a composite stream keeps from one computation to the next (see LastUpdate)."""

    tenant: int
    stream_id: int
    state: bytes


class StoredVerdict(NamedTuple):
    """How often computations of a stream ended so in a batch, and the last of them."""

    tenant: int
    stream_id: int
    verdict: str
    times: int
    last: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """All that one transaction stores of a partition."""

    partition: int
    first_offset: int
    next_offset: int
    emitted_offset: int
    updates: Sequence[StoredUpdate] = ()
    states: Sequence[StoredState] = ()
    """as they are after the batch, of those streams that have one"""
    verdicts: Sequence[StoredVerdict] = ()
    forwarded: Mapping[int, int] = field(default_factory=dict)
    effect: Effect | None = None
    """what a control record brings about; then the batch has no updates"""
    put_off: Sequence[PutOff] = ()
    """records of this stretch that are computed later; or that wait already, and are held now"""
    taken_up: Sequence[TreeKey] = ()
    """records that had been put off; what follows from them is in this batch"""
    emitted_late: Sequence[TreeKey] = ()
    """such records of earlier batches: all that came of them is emitted"""
    inputs: Sequence[StoredInput] = ()
    """as they are after the batch"""
    marks: Mapping[tuple[int, StreamRef], tuple[int, int]] = field(default_factory=dict)
    """from a partition, of a stream of another tenant: offset and part of the last one taken in"""
    kept: Sequence[StoredEntry] = ()
    """what composites keep otherwise than before, each key once"""
    crossings: Sequence[Crossing] = ()
    """what this batch sends to other partitions; they are kept until `emitted_offset` has passed
    them or, where they are late, until they are named in `emitted_late`"""
    outside: Sequence[OutsideReader] = ()
    """readers of other tenants that may read from here on, or may not any more"""
    first_tree: int = 0
    """trees of the record at the first offset with smaller numbers were stored before"""
    next_tree: int = 0
    """trees of the record at the next offset with smaller numbers are stored with this"""
    claim: int | None = None
    """by which this is stored beside the other batches: it moves no progress, and asks for none"""
