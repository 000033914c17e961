"""The thread of an API process for what goes on after requests were answered.

It works off jobs, keeps dynamic groups in step, removes deleted tenants, ends grants that have
expired, and forgets what is too old in the audit log and of what was used.

One process at a time does, a batch long: it holds a lock of its connection, so that nobody
waits for one that was killed.
"""

from __future__ import annotations

import logging
import threading

from api.fleets.audit import OldEntries
from api.fleets.departures import Departures
from api.fleets.groups import Groups
from api.fleets.jobs import Jobs
from api.services import Services
from servioticy.errors import Unavailable

PAUSE_SECONDS = 0.25
"""Between two looks whether there is something to do."""
PAUSE_AFTER_FAILURE = 1.0
FORGET_EVERY_MS = 600_000
FORGOTTEN_AT_ONCE = 10_000
"""Hours of streams; a statement takes some tens of milliseconds for them."""
_LOCK = 7_305_808_869_234  # advisory lock: any number that nothing else uses

log = logging.getLogger("api.fleets")


class Fleets:
    """Goes on where it was, whoever was killed: all of its knowledge is in the store."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._locks = services.ports.statements("jobs")
        self._jobs = Jobs(services)
        self._groups = Groups(services)
        self._usage = services.ports.statements("usage")
        self._forget_at = 0
        self._audit = OldEntries(services)
        self._departures = Departures(services)
        self._stop = threading.Event()

    def start(self) -> None:
        """Work in a thread of this process until it ends."""
        threading.Thread(target=self._run, name="fleets", daemon=True).start()

    def turn(self) -> bool:
        """Do a little, unless another process is at it; False: there was nothing to do.

        Raises Unavailable.
        """
        row = self._locks.row("lock", key=_LOCK)
        if row is None or not row[0]:
            return False
        try:
            self._forget_usage()
            ended = self._services.ports.changes.end_expired(self._services.now())
            looked = self._groups.turn()
            others = [each.turn() for each in (self._audit, self._departures)]
            return self._jobs.turn() or looked or ended or any(others)
        finally:
            self._locks.rows("unlock", key=_LOCK)

    def _forget_usage(self) -> None:
        """Remove what tenants have used too long ago, some of it, now and then."""
        now = self._services.now()
        if now < self._forget_at:
            return
        kept = self._services.settings.usage.days * 86_400_000
        gone = self._usage.rows("forget", before=now - kept, most=FORGOTTEN_AT_ONCE)
        self._forget_at = now + (0 if len(gone) == FORGOTTEN_AT_ONCE else FORGET_EVERY_MS)

    def _run(self) -> None:
        while True:
            pause = PAUSE_SECONDS
            try:
                if self.turn():
                    continue
            except Unavailable as error:
                log.warning("fleets_wait", extra={"reason": str(error)})
                pause = PAUSE_AFTER_FAILURE
            except Exception:  # without this thread nothing would follow any more
                log.exception("fleets_failed")
                pause = PAUSE_AFTER_FAILURE
            self._stop.wait(pause)
