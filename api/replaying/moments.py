"""The time of a replay: that of the log, as far as updates tell it, and what is due by it."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from sandbox.trees import Kept
from servioticy.domain.model import Timestamp
from servioticy.domain.time_units import PER_SECOND, unit_of


def moment(timestamp: Timestamp, now: int) -> int | None:
    """Return which time this is, in ms since 1970, up to the next whole one; None: none.

    `now` is one, too, by which it is found in which unit the timestamp is.
    """
    unit = unit_of(timestamp, now / 1000)
    return None if unit is None else -(-timestamp * 1000 // PER_SECOND[unit])


class Due(NamedTuple):
    """A time that a composite has set itself for an entry."""

    at: int
    node: int
    key: bytes


class DueTimes:
    """The times that composites have set themselves."""

    def __init__(self) -> None:
        self._heap: list[Due] = []
        self._now: dict[tuple[int, bytes], int] = {}

    def note(self, entries: Iterable[Kept]) -> None:
        """Note these entries as they are from here on."""
        for each in entries:
            key = each.node, each.key
            if each.due is None:
                self._now.pop(key, None)
            elif self._now.get(key) != each.due:
                self._now[key] = each.due
                heappush(self._heap, Due(each.due, *key))

    def first(self, until: int) -> Due | None:
        """Return what is due first, until then, as something that has come; None: nothing is."""
        while self._heap and self._heap[0].at <= until:
            found = heappop(self._heap)
            key = found.node, found.key
            if self._now.get(key) == found.at:
                del self._now[key]
                return found
        return None
