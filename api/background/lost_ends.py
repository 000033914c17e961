"""Deletions and revocations whose record the log has lost are told again.

Whoever asked for one has got an answer, and cannot ask again: to the API what was deleted or
revoked is gone. What is not carried out after a minute may only be late, as the pipeline may be.
So it is noted where the log ends then, which is behind the record; once the pipeline has stored
all before that place and the end is still not carried out, the log has lost it. One that is lost
again and again is told after twice as long each time: it may be a fault of ours, not the log's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from api.services import Services
from servioticy.ports.change_store import Change

PAUSE_SECONDS = 60.0
"""Between two looks, and until an end is overdue."""
MOST_SECONDS = 3_600.0
"""Between two times that the same end is told again."""

End: TypeAlias = tuple[int, Change]
"""A deletion or a revocation, with its tenant."""


@dataclass(slots=True)
class _Overdue:
    """What is known of an end that is overdue."""

    behind: int
    """An offset of its partition, behind its record."""
    not_before: float = 0.0
    """When it may be told again."""
    pause: float = PAUSE_SECONDS


class LostEnds:
    """Tells the log of them, some at a time. For one thread."""

    def __init__(
        self, services: Services, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._services = services
        self._monotonic = monotonic
        self._next = 0.0
        self._overdue: dict[End, _Overdue] = {}

    def turn(self) -> bool:
        """Look for them once a minute; False: nothing more is to be done. Raises Unavailable."""
        now, changes = self._monotonic(), self._services.ports.changes
        if now < self._next:
            return False
        self._next = now + PAUSE_SECONDS
        # Asked for first: what the pipeline has carried out till then is not overdue any more.
        passed = self._passed()
        overdue = changes.overdue(self._services.now() - int(1000 * PAUSE_SECONDS))
        known = self._overdue
        lost = [each for each in overdue if each in passed and known[each].not_before <= now]
        if lost:
            changes.tell_again(lost)
        ends = self._log_ends(overdue)
        for each in lost:
            pause = min(2 * known[each].pause, MOST_SECONDS)
            known[each] = _Overdue(ends[each[1].partition], now + pause, pause)
        self._overdue = {
            each: known.get(each) or _Overdue(ends[each[1].partition]) for each in overdue
        }
        return False

    def _passed(self) -> set[End]:
        """Return those of which the pipeline has stored all that may be their record."""
        passed = set()
        for partition, present in self._log_ends(self._overdue).items():
            here = [each for each in self._overdue if each[1].partition == partition]
            tenants = {tenant for tenant, _ in here}
            stored, put_off = self._services.ports.history.stored(partition, tenants)
            for each in here:
                # A log that has lost its end may never reach again as far as it did.
                behind = min(self._overdue[each].behind, present)
                if min(stored, put_off.get(each[0], stored)) >= behind:
                    passed.add(each)
        return passed

    def _log_ends(self, ends: Iterable[End]) -> dict[int, int]:
        """Return where the log ends, by partition, of all that these are in."""
        partitions = {change.partition for _, change in ends}
        return {each: self._services.ports.log.end_offset(each) for each in partitions}
