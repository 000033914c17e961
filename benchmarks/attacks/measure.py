"""One attack on a platform of its own, seen by an innocent tenant."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.attacks import notes, running
from benchmarks.attacks.apart import prepared
from benchmarks.attacks.arrivals import (
    Suffered,
    Waits,
    recovered,
    since,
    usual,
    waits,
)
from benchmarks.attacks.attack import Attack
from benchmarks.attacks.attacker import Place
from benchmarks.attacks.idler import idles
from benchmarks.attacks.innocent import Innocent
from servioticy.settings import Settings
from servioticy.storage.database import Database
from servioticy.storage.tenants import PostgresTenants

WARM_SECONDS = 10.0
SECONDS_TO_RECOVER = 30.0
LAST_SECONDS = 5.0
TICK_SECONDS = 0.1


@dataclass(slots=True)
class Measured:
    """What an attack did, what it used of memory (megabytes by program), what it got."""

    suffered: Suffered
    peaks: dict[str, float]
    got: Counter[str]
    complaints: Counter[str]
    updates: int
    answers: Counter[str]
    reopened: int
    """How often the innocent's socket was lost."""
    longest_change: float
    """Seconds that the innocent's slowest change of a document took."""
    used: dict[str, float]
    """Seconds of the processor by program while the attack lasted, and the attacker's own."""

    late: tuple[float, float]
    """Seconds that the machine itself was late at most, before and during the attack."""


@dataclass(slots=True)
class _Watch:
    """Looks at memory once a second and tells how the innocent fares."""

    settings: Settings
    innocent: Innocent
    peaks: dict[str, float] = field(default_factory=dict)
    _next: float = 0.0

    def until(self, done: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait for it, at most so long."""
        deadline = time.perf_counter() + seconds
        while not done() and time.perf_counter() < deadline:
            if time.perf_counter() >= self._next:
                self._next = time.perf_counter() + 1.0
                self._look(what)
            time.sleep(TICK_SECONDS)

    def _look(self, what: str) -> None:
        for name, megabytes in running.memory(self.settings).items():
            self.peaks[name] = max(megabytes, self.peaks.get(name, 0.0))
        missing, sent = self.innocent.missing(), len(self.innocent.sent)
        oldest = self.innocent.oldest()
        sys.stderr.write(
            f"  {what}: {sent} updates, {missing} on their way, the oldest {oldest:.1f} s\n"
        )
        sys.stderr.flush()


def measure(
    settings: Settings, attack: Attack, seconds: float, logs: Path | None, *, yields: bool = False
) -> Measured:
    """Run the attack on a fresh platform: as many seconds alone, and beside it.

    Where it `yields` the attacker works only while nobody else wants the processor.
    """
    with running.platform(settings, logs) as found:
        theirs, ours = _tenants(found)
        innocent = Innocent(Place(found, ours))
        watch = _Watch(found, innocent)
        innocent.start()
        place = Place(found, theirs, innocent.service_object, innocent.changed_object)
        with idles() as idler, prepared(attack, place, seconds, yields=yields) as apart:
            watch.until(lambda: False, WARM_SECONDS, "warms up")
            first = time.perf_counter()
            watch.until(lambda: False, seconds, "before")
            before = _waits(innocent, first, time.perf_counter())
            begin, used = time.perf_counter(), running.used(found)
            apart.begin()
            forever = float("inf")
            watch.until(lambda: apart.is_over() or apart.is_ready, forever, "makes ready")
            ready = since(begin, time.perf_counter())
            watch.until(apart.is_over, forever, attack.id)
            attacker, lateness = apart.processor_seconds(), idler.heard()
        used = {name: each - used.get(name, 0.0) for name, each in running.used(found).items()}
        end, limit = time.perf_counter(), usual(before)

        def back() -> float | None:
            return recovered(list(innocent.sent), end, limit, time.perf_counter())

        watch.until(lambda: back() is not None, SECONDS_TO_RECOVER, "after")
        recovery = back()
        innocent.stop_sending()
        # What was sent last has a while in any case.
        left = max(LAST_SECONDS, SECONDS_TO_RECOVER - (time.perf_counter() - end))
        watch.until(lambda: not innocent.missing(), left, "waits for the last")
        suffered = Suffered(
            before=before,
            made_ready=_waits(innocent, begin, ready),
            during=_waits(innocent, ready, end),
            lost=innocent.missing(),
            turned_away=innocent.turned_away,
            recovered=recovery,
        )
        if logs is not None:
            notes.write(found, logs, innocent, lateness, begin)
        return Measured(
            suffered,
            watch.peaks,
            apart.got,
            running.complaints(found),
            len(innocent.sent),
            Counter(each.answer for each in innocent.sent),
            innocent.reopened,
            max(innocent.changes, default=0.0),
            {**used, "attacker": attacker},
            (lateness.longest(first, begin), lateness.longest(begin, end)),
        )


def _waits(innocent: Innocent, begin: float, end: float) -> Waits:
    sent = [replace(each) for each in innocent.sent if begin <= each.due < end]
    return waits(sent, time.perf_counter())


def _tenants(settings: Settings) -> tuple[str, str]:
    database = Database(settings.store.dsn)
    try:
        tenants = PostgresTenants(database)
        return tenants.create_tenant("attacker"), tenants.create_tenant("innocent")
    finally:
        database.close()
