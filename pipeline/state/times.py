"""The times that composites of a partition have set themselves: the log is told when they come."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from servioticy.domain.records import TickRecord
from servioticy.ports.kept_entries import DueEntry, KeptEntries, StoredEntry

EACH = 100
"""Entries of a tenant that are under way through the log at once; so many fit into a record."""

AGAIN_MS = 1000
"""Between two looks, while some of what has come is not done."""

LOST_MS = 60_000
"""What has not been done for so long has come to nothing, and comes again: no harm."""


class Times:
    """What is due in one partition, and which of it the log has been told."""

    def __init__(self, partition: int, store: KeptEntries) -> None:
        self._partition = partition
        self._store = store
        self._look_at = -math.inf
        """In ms since 1970."""
        self._told: dict[DueEntry, float] = {}
        """When the log was told."""

    def note(self, kept: Iterable[StoredEntry]) -> None:
        """Note what has been stored."""
        for each in kept:
            if each.due is not None and 0 <= each.due < self._look_at:
                self._look_at = each.due

    def look_anew(self) -> None:
        """Others are computed here now."""
        self._look_at = -math.inf

    def left(self, now: float) -> float:
        """Milliseconds until there is something to look at."""
        return max(0.0, self._look_at - now)

    def come(self, now: float) -> Sequence[TickRecord]:
        """What the log is to be told at this time, in ms since 1970. Raises Unavailable."""
        if now < self._look_at:
            return ()
        due = self._store.due(self._partition, int(now), EACH)
        told = {each: self._told[each] for each in due if each in self._told}
        new = [each for each in due if now - told.get(each, -math.inf) >= LOST_MS]
        self._told = told | dict.fromkeys(new, now)
        after = self._store.next_due(self._partition, int(now))
        next_ = math.inf if after is None else float(after)
        self._look_at = min(next_, now + AGAIN_MS) if due else next_
        streams: dict[tuple[str, str], list[bytes]] = {}
        for service_object, stream, key, _due in new:
            streams.setdefault((service_object, stream), []).append(key)
        return [TickRecord(*stream, int(now), tuple(keys)) for stream, keys in streams.items()]
