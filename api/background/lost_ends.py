"""Deletions and revocations whose record the log has lost are told again.

Whoever asked for one has got an answer, and cannot ask again: to the API what was deleted or
revoked is gone. So what the pipeline has not carried out after a minute is told once more; and,
as it may be late or away and not the log at fault, after twice as long each time from then on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from api.services import Services
from servioticy.ports.change_store import Change

PAUSE_SECONDS = 60.0
"""Between two looks, and until an end is overdue."""
MOST_SECONDS = 3_600.0


@dataclass
class _Told:
    """When an end is told again, and how long it waits then."""

    at: float
    pause: float = 2 * PAUSE_SECONDS


class LostEnds:
    """Tells the log of them, some at a time. For one thread."""

    def __init__(
        self, services: Services, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._services = services
        self._monotonic = monotonic
        self._next = 0.0
        self._told: dict[Change, _Told] = {}
        """Of those that are overdue, no others."""

    def turn(self) -> bool:
        """Look for them once a minute; False: nothing more is to be done. Raises Unavailable."""
        now, changes = self._monotonic(), self._services.ports.changes
        if now < self._next:
            return False
        overdue = changes.overdue(self._services.now() - int(1000 * PAUSE_SECONDS))
        known = {change: self._told.get(change, _Told(now)) for _, change in overdue}
        ends = [each for each in overdue if known[each[1]].at <= now]
        if ends:
            changes.tell_again(ends)
        for _, change in ends:
            told = known[change]
            known[change] = _Told(now + told.pause, min(2 * told.pause, MOST_SECONDS))
        self._told, self._next = known, now + PAUSE_SECONDS
        return False
