"""When a program is not run for a while: after it has ended too many processes.

Only kill-class faults count (time-out, memory, crash), and only those with a proven culprit.
A script that merely throws costs nobody anything and is never suspended.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cachetools import LRUCache, TTLCache

KILLS = 3
WINDOW_SECONDS = 600.0
SUSPENSIONS = (60.0, 300.0, 1800.0)
TENANT_KILLS = 12
"""From so many in the window on, a tenant's programs are suspended at their first."""

MAX_REMEMBERED = 10_000
MAX_TENANTS = 10_000
MAX_KILLS = 1000
MAX_PROVEN = 100_000


def _kills() -> deque[float]:
    return deque(maxlen=MAX_KILLS)


@dataclass(frozen=True, slots=True)
class Suspension:
    """A program does not run for so many seconds; at 0 it is half-open: tried once more."""

    tenant: str
    kind: str
    kills: int
    seconds: float


@dataclass(slots=True)
class _Record:
    tenant: str
    kind: str = ""
    kills: deque[float] = field(default_factory=_kills)
    level: int = 0  # how often suspended in a row
    until: float = 0.0


class Breaker:
    """A breaker remembers who has ended processes, programs and tenants, and suspends programs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
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
        most = 1 if record.level or len(kills) > TENANT_KILLS else KILLS
        if len(record.kills) >= most:
            record.until = now + SUSPENSIONS[min(record.level, len(SUSPENSIONS) - 1)]
            record.level += 1

    @property
    def is_quiet(self) -> bool:
        """Whether no program has ended a process for long: nothing is suspended."""
        return not self._records and not self._tenants

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

    def suspension(self, tenant: str, program: str) -> Suspension | None:
        """Return why the program must not run now; None if it may."""
        record = self._records.get(program)
        left = record.until - self._clock() if record else 0.0
        if record and left > 0:
            return _described(record, left)
        return None if program in self._proven else self._unproven(tenant)

    def _unproven(self, tenant: str) -> Suspension | None:
        """Return why a program that has given no outcome yet must not run, None if it may.

        A tenant that ends process after process does not get another try with each new
        program; its programs that have given outcomes run on.
        """
        kills = self._tenants.get(tenant, ())
        if len(kills) <= TENANT_KILLS:
            return None
        left = kills[-TENANT_KILLS - 1] + WINDOW_SECONDS - self._clock()
        what = "a process ended by this tenant's programs"
        return Suspension(tenant, what, len(kills), left) if left > 0 else None

    def all(self) -> dict[str, Suspension]:
        """Return all programs that are suspended or half-open, by their ids."""
        now = self._clock()
        return {
            program: _described(record, max(0.0, record.until - now))
            for program, record in self._records.items()
            if record.level
        }


def _note(kills: deque[float], now: float) -> None:
    kills.append(now)
    while now - kills[0] > WINDOW_SECONDS:
        kills.popleft()


def _described(record: _Record, left: float) -> Suspension:
    return Suspension(record.tenant, record.kind, len(record.kills), left)
