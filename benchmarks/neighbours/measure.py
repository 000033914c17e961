"""One neighbour on a platform of its own, seen by innocent tenants before, beside and after it."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.attacks import running
from benchmarks.attacks.apart import prepared
from benchmarks.attacks.arrivals import Waits, waits
from benchmarks.attacks.attacker import Place
from benchmarks.attacks.innocent import Innocent
from benchmarks.neighbours.kinds import Neighbour
from servioticy.bootstrap import connect
from servioticy.settings import Settings
from servioticy.storage.quotas import PostgresQuotas
from servioticy.storage.roles import Role
from servioticy.storage.tenants import PostgresTenants

INNOCENTS = 3
PERIOD_SECONDS = 0.05
WARM_SECONDS = 10.0
LAST_SECONDS = 30.0
"""What is on its way in the end has so long."""
TICK_SECONDS = 0.1
ACCEPTED = "202"
PHASES = ("before", "made ready", "during", "after")
VERDICTS = "SELECT verdict, sum(count) FROM verdicts WHERE tenant_id = ANY(%(tenants)s) GROUP BY 1"


@dataclass(frozen=True, slots=True)
class Beside:
    """How the innocent fared, and what the neighbour got."""

    waits: Mapping[str, Waits]
    """by phase"""
    updates: int
    lost: int
    refused: int
    got: Mapping[str, int]

    @property
    def rise(self) -> float:
        """How much larger p99 was beside the neighbour than before it: 0.2 is a fifth."""
        before = self.waits["before"].p99
        return self.waits["during"].p99 / before - 1 if before else 0.0

    def faults(self, most: float) -> list[str]:
        """Return what is not as it should be, in words: p99 may rise by that part at most."""
        found = []
        if self.rise > most:
            found.append(f"p99 rose by {100 * self.rise:.0f} %")
        if self.lost:
            found.append(f"{self.lost} lost")
        if self.refused:
            found.append(f"{self.refused} refused")
        return found


def measure(
    settings: Settings,
    neighbour: Neighbour,
    seconds: float,
    logs: Path | None,
    *,
    yields: bool,
    checkout: Path | None = None,
) -> Beside:
    """Run the innocent alone, beside the neighbour, and alone again, so many seconds each.

    The neighbour's client may take only the time that nobody else wants: it `yields`. The platform
    may be that of another `checkout`.
    """
    with running.platform(settings, logs, checkout=checkout) as found:
        ours = _tokens(found, "innocent", INNOCENTS, {})
        theirs = _tokens(found, "neighbour", neighbour.tenants, neighbour.quotas)
        innocents = [
            Innocent(Place(found, token), PERIOD_SECONDS, 1, only_sends=True)
            for token in ours.values()
        ]
        for each in innocents:
            each.start()
        first, *others = theirs.values()
        public = tuple(each.service_object for each in innocents)
        place = Place(found, first, others=tuple(others), innocents=public)
        with prepared(neighbour.does, place, seconds, yields=yields) as apart:
            _pause(WARM_SECONDS, "warm up")
            times = [time.perf_counter()]
            _pause(seconds, "before")
            times.append(time.perf_counter())
            apart.begin()
            _until(lambda: apart.is_over() or apart.is_ready)
            times.append(time.perf_counter())
            _tell(neighbour.does.what)
            _until(apart.is_over)
        times.append(time.perf_counter())
        _pause(seconds, "after")
        times.append(time.perf_counter())
        for each in innocents:
            each.stop_sending()
        last = time.perf_counter() + LAST_SECONDS
        _until(lambda: not _missing(innocents) or time.perf_counter() > last)
        return Beside(
            {
                name: _waits(innocents, times[number], times[number + 1])
                for number, name in enumerate(PHASES)
            },
            sum(len(each.sent) for each in innocents),
            _missing(innocents),
            sum(sent.answer != ACCEPTED for each in innocents for sent in each.sent),
            {**apart.got, **_verdicts(found, list(theirs))},
        )


def _tokens(
    settings: Settings, name: str, count: int, quotas: Mapping[str, int]
) -> dict[int, str]:
    """Return a token for each of so many new tenants, which have these quotas."""
    database = connect(settings, Role.API)
    found = {}
    try:
        tenants, given = PostgresTenants(database), PostgresQuotas(database)
        for number in range(count):
            token = tenants.create_tenant(f"{name} {number}")
            found[tenants.tenant_of(token) or 0] = token
            for quota, most in quotas.items():
                given.give(f"{name} {number}", quota, most)
    finally:
        database.close()
    return found


def _verdicts(settings: Settings, tenants: Sequence[int]) -> Mapping[str, int]:
    database = connect(settings, Role.PIPELINE)
    try:
        rows = database.rows(VERDICTS, {"tenants": list(tenants)})
    finally:
        database.close()
    return Counter({str(verdict): int(count) for verdict, count in rows})


def _waits(innocents: Sequence[Innocent], begin: float, end: float) -> Waits:
    sent = [
        replace(sent) for each in innocents for sent in list(each.sent) if begin <= sent.due < end
    ]
    return waits(sent, time.perf_counter())


def _missing(innocents: Sequence[Innocent]) -> int:
    return sum(each.missing() for each in innocents)


def _pause(seconds: float, what: str) -> None:
    _tell(what)
    time.sleep(seconds)


def _until(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(TICK_SECONDS)


def _tell(what: str) -> None:
    sys.stderr.write(f"  {what}\n")
    sys.stderr.flush()
