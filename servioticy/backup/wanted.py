"""Which records of the topic `emitted` durable subscriptions still have to get.

Most keep pace: what follows from where the last of those stands is kept, whosesoever it is. Of
those that are far behind, what their streams have is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from servioticy.domain.log_loss import Bounds
from servioticy.domain.records import UnreadableRecord, read_emitted, write
from servioticy.messaging.stretches import Record
from servioticy.storage.cursors import Standing
from servioticy.storage.snapshot import PostgresSnapshot

NEAR = 10_000
"""Who is behind by so many records keeps pace."""
MOST_STREAMS = 100_000
"""Of those that are behind, so many are told apart; of more all that came is kept."""
BEFORE_MS = 60_000
"""A subscription that has not begun begins at what was emitted seconds before it was made."""

Beginnings: TypeAlias = Mapping[int, int]
"""By partition of the topic, an offset."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of each partition: all from `near` on, and before it of these streams."""

    near: Beginnings
    far: Mapping[bytes, Beginnings] | None
    """By key, from where on. None: of all streams, from `start` on."""
    start: Beginnings

    def has(self, partition: int, record: Record) -> bool:
        """Tell whether somebody has to get this record."""
        if record.offset >= self.near[partition]:
            return True
        if self.far is None:
            return record.offset >= self.start[partition]
        begins = self.far.get(record.key or b"")
        return begins is not None and record.offset >= begins[partition]


def wanted(
    snapshot: PostgresSnapshot,
    bounds: Mapping[int, Bounds],
    offsets_at: Callable[[int], Beginnings],
) -> Wanted:
    """Return what the durable subscriptions of a snapshot still have to get of the topic.

    `offsets_at` tells from where on it has what was emitted at a time (ms since 1970) or later.
    """
    near = {partition: each.end for partition, each in bounds.items()}
    far: dict[bytes, dict[int, int]] = {}
    known = True
    start = dict(near)

    def note(key: bytes, begins: Beginnings) -> None:
        nonlocal known
        if known := known and (key in far or len(far) < MOST_STREAMS):
            far[key] = _least(far.get(key, begins), begins)

    for page in snapshot.cursors():
        behind: dict[str, Beginnings] = {}
        for each in page:
            begins = _begins(each, bounds, offsets_at)
            start = _least(start, begins)
            if all(begins[n] >= bounds[n].end - NEAR for n in bounds):
                near = _least(near, begins)
            else:
                behind[each.id] = begins
        found = snapshot.streams_of(behind, MOST_STREAMS + 1) if behind else []
        known = known and len(found) <= MOST_STREAMS
        for id_, key in found:
            note(key.encode(), behind[id_])
    return Wanted(near, far if known else None, start)


def kept(record: Record, stored: int) -> Record | None:
    """Return a record as it is kept; None: it is made again from what is not stored yet.

    Its place counts from stored progress, as all that has to do with the log.
    """
    try:
        read = read_emitted(record.value)
    except UnreadableRecord:  # nobody has got it, and nobody will
        return None
    if read.place is None:
        return record
    offset, *rest = read.place
    if offset >= stored:
        return None
    again = msgspec.structs.replace(read, place=(offset - stored, *rest))
    return record._replace(value=write(again))


def _begins(
    standing: Standing, bounds: Mapping[int, Bounds], offsets_at: Callable[[int], Beginnings]
) -> Beginnings:
    """Return from where on a subscription still has to get the topic."""
    cursor = standing.cursor
    at = cursor.offsets
    if not at.keys() >= bounds.keys():
        # What is in its history has been emitted before; else it begins where it was made.
        from_topic = bool(cursor.since) or not cursor.history
        others = offsets_at(standing.created_ms - BEFORE_MS) if from_topic else {}
        at = {n: at.get(n, others.get(n, each.end)) for n, each in bounds.items()}
    return {n: max(each.first, min(at[n], each.end)) for n, each in bounds.items()}


def _least(*several: Beginnings) -> dict[int, int]:
    return {each: min(begins[each] for begins in several) for each in several[0]}
