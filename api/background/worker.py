"""The threads of an API process for what goes on after requests were answered.

Three of them: one for what somebody waits for to end, whatever work of others the other one has;
and one for backfills, of which nothing is in the way of either.
One process at a time does each, a turn long: it holds a lock of its connection, so that nobody
waits for one that was killed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Protocol

from api.backfills.jobs import BackfillJobs
from api.backfills.plan import Backfills
from api.background.departures import Departures
from api.background.ended_grants import EndedGrants
from api.background.forgetting import left_behind, old_atoms, old_entries, old_tokens, old_usage
from api.background.lost_ends import LostEnds
from api.fleets.groups import Groups
from api.fleets.jobs import Jobs
from api.services import Services
from servioticy.errors import Unavailable
from servioticy.ports.statements import Statements

PAUSE_SECONDS = 0.25
"""Between two looks whether there is something to do."""
PAUSE_AFTER_FAILURE = 1.0
_WORK = 7_305_808_869_234  # advisory lock: any number that nothing else uses
_ENDS = 7_305_808_869_235
_FILLS = 7_305_808_869_237

log = logging.getLogger("api.background")


class Work(Protocol):
    """Something that goes on by itself, a little at a time. All it knows is in the store."""

    def turn(self) -> bool:
        """Do a little; False: there was nothing to do. Raises Unavailable."""


class Worker:
    """Goes on where it was, whoever was killed."""

    def __init__(self, locks: Statements, lock: int, works: Mapping[str, Work]) -> None:
        """The `works` by the names that logs know them by."""
        self._locks = locks
        self._lock = lock
        self._works = works
        self._stop = threading.Event()

    def start(self) -> None:
        """Work in a thread of this process until it ends."""
        threading.Thread(target=self._run, name="background", daemon=True).start()

    def turn(self) -> bool:
        """Do a little of each, unless another process is at it; False: there was nothing to do.

        Raises Unavailable.
        """
        with self._locks.session():
            row = self._locks.row("lock", key=self._lock)
            if row is None or not row[0]:
                return False
            try:
                # Each has its turn.
                found = [self._turn_of(name, each) for name, each in self._works.items()]
            finally:
                self._locks.rows("unlock", key=self._lock)
        late = next((each for each in found if isinstance(each, Unavailable)), None)
        if late is not None:
            raise late
        return any(found)

    def _turn_of(self, name: str, work: Work) -> bool | Unavailable:
        """What the work says, or for what it has to wait: the others need not."""
        try:
            return work.turn()
        except Unavailable as error:
            return error
        except Exception:  # a bug in one of them keeps none of the others waiting
            log.exception("background_failed", extra={"work": name})
            return False

    def _run(self) -> None:
        while True:
            pause = PAUSE_SECONDS
            try:
                if self.turn():
                    continue
            except Unavailable as error:
                log.warning("background_waits", extra={"reason": str(error)})
                pause = PAUSE_AFTER_FAILURE
            except Exception:  # without this thread nothing would follow any more
                log.exception("background_failed")
                pause = PAUSE_AFTER_FAILURE
            self._stop.wait(pause)


def worker(services: Services) -> Worker:
    """Return the one that does all that may take its time."""
    works: dict[str, Work] = {
        "old_usage": old_usage(services),
        "groups": Groups(services),
        "old_entries": old_entries(services),
        "old_tokens": old_tokens(services),
        "old_atoms": old_atoms(services),
        "left_behind": left_behind(services),
        "departures": Departures(services),
        "jobs": Jobs(services),
    }
    return Worker(services.ports.statements("jobs"), _WORK, works)


def ending(services: Services) -> Worker:
    """Return the one that ends what is to end: nobody's groups or jobs are in its way."""
    works: dict[str, Work] = {
        "ended_grants": EndedGrants(services),
        "lost_ends": LostEnds(services),
    }
    return Worker(services.ports.statements("jobs"), _ENDS, works)


def filling(services: Services, backfills: Backfills) -> Worker:
    """Return the one that has history computed: its turn lasts until none is left to be."""
    works: dict[str, Work] = {"backfills": BackfillJobs(services, backfills)}
    return Worker(services.ports.statements("jobs"), _FILLS, works)
