"""When a program is not run for a while: after it has ended too many processes.

Only kill-class faults count (time-out, memory, crash), and only those with a proven culprit.
A script that merely throws costs nobody anything and is never suspended. Nor is a program for
what others of its tenant have done: what all of them together may cost is the share of the
processor that their tenant has, and what is ended counts in it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cachetools import LRUCache, TTLCache

from sandbox.suspension import Suspension

KILLS = 3
WINDOW_SECONDS = 600.0
SUSPENSIONS = (60.0, 300.0, 1800.0)
TENANT_KILLS = 12
"""From so many in the window on, a tenant's programs are suspended at their first, but for those
that have given outcomes."""

MAX_REMEMBERED = 10_000
MAX_TENANTS = 10_000
MAX_KILLS = 1000
MAX_PROVEN = 100_000


def _kills() -> deque[float]:
    return deque(maxlen=MAX_KILLS)


@dataclass(slots=True)
class _Record:
    tenant: str
    kind: str = ""
    kills: deque[float] = field(default_factory=_kills)
    level: int = 0  # how often suspended in a row
    until: float = 0.0


class Breaker:
    """A breaker remembers which programs have ended processes, and suspends those."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock, self._wall_clock = clock, wall_clock
        self._records: LRUCache[str, _Record] = LRUCache(MAX_REMEMBERED)
        self._proven: dict[str, None] = {}
        # A tenant is forgotten that has ended nothing for the whole window.
        self._tenants: TTLCache[str, deque[float]] = TTLCache(MAX_TENANTS, WINDOW_SECONDS, clock)

    def killed(self, tenant: str, program: str, kind: str) -> None:
        """Note that a process was ended because of this program."""
        now = self._clock()
        record = self._records[program] = self._records.get(program) or _Record(tenant)
        record.kind = kind
        _note(record.kills, now)
        kills = self._tenants[tenant] = self._tenants.get(tenant) or _kills()
        _note(kills, now)
        one_more = len(kills) > TENANT_KILLS and program not in self._proven
        if len(record.kills) >= (1 if record.level or one_more else KILLS):
            record.until = now + SUSPENSIONS[min(record.level, len(SUSPENSIONS) - 1)]
            record.level += 1

    @property
    def is_quiet(self) -> bool:
        """Whether no program has ended a process for long: nothing is suspended."""
        return not self._records

    def survived(self, programs: Iterable[str]) -> None:
        """Note that programs gave outcomes; those that were half-open are trusted again."""
        for program in programs:
            if program not in self._proven:
                self._note_proven(program)
            record = self._records.get(program)
            if record and record.level and self._clock() >= record.until:
                del self._records[program]

    def _note_proven(self, program: str) -> None:
        if len(self._proven) >= MAX_PROVEN:  # it is looked at too often to be an LRU cache
            self._proven.clear()
        self._proven[program] = None

    def suspension(self, program: str) -> Suspension | None:
        """Return why the program must not run now; None if it may."""
        record = self._records.get(program)
        if record is None or record.until <= self._clock():
            return None
        return self._described(program, record)

    def all(self) -> dict[str, Suspension]:
        """Return all programs that are suspended or half-open, by their ids."""
        return {
            program: self._described(program, record)
            for program, record in self._records.items()
            if record.level
        }

    def _described(self, program: str, record: _Record) -> Suspension:
        left = max(0.0, record.until - self._clock())
        until = self._wall_clock() + left
        return Suspension(record.tenant, program, record.kind, len(record.kills), left, until)


def _note(kills: deque[float], now: float) -> None:
    kills.append(now)
    while now - kills[0] > WINDOW_SECONDS:
        kills.popleft()
