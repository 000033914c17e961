"""Processes that take updates tell each other what they have let in: so they share rates.

A request is answered by what its process knows. Half a second later others know what was let in,
where it is much of a quota; their own buckets have as much less then. Nobody keeps a count for
all, so nothing is left of a process that is killed, and while Postgres is away each goes on with
what it knows.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ingest.quotas import SendersQuotas
from servioticy.errors import ServioticyError
from servioticy.ports.rates import Rates

SECONDS = 0.5
"""Between two times of telling; LATE_SECONDS has room for the way, too."""
ALONE_SECONDS = 30.0
"""Of silence: who comes wakes those that wait."""
COUNT_SECONDS = 5.0
"""After a process has gone others go on telling for so long at most."""
AWAY_SECONDS = 5.0
"""Who has not heard for longer than it meant to by so many begins anew: what has come is old."""
MOST_TOLD = 2_000
"""Tenants of whom it is told at a time: the nearest to their quotas first, others next time."""

log = logging.getLogger("servioticy")


class Sharing:
    """Tells and hears, in a thread of its own; a process that is alone asks and tells nothing."""

    def __init__(
        self, rates: Rates, quotas: SendersQuotas, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rates = rates
        self._quotas = quotas
        self._clock = clock
        self._told = self._counted = float("-inf")
        self._heard = clock()
        self._is_counted = False
        self._others = 0

    def start(self) -> None:
        """Share from now on, in a thread of this process until it ends."""
        threading.Thread(target=self._run, name="sharing", daemon=True).start()

    def turn(self) -> None:
        """Hear what is told until it is time to tell, and tell. Raises Unavailable, Rejected."""
        left = max(0.0, self._told + SECONDS - self._clock())
        wait = min(SECONDS, left) if self._others else ALONE_SECONDS
        said = self._rates.heard(wait)
        now = self._clock()
        pause, self._heard = now - self._heard, now
        if said is not None and pause > wait + AWAY_SECONDS:
            # This process was stopped, or its machine: others have told all the while.
            self._rates.leave()
            return
        if said is None:
            # What was let in while nobody could be told is over.
            self._quotas.forget_untold()
            self._is_counted = False
        for let_in in said or ():
            self._quotas.hear(let_in, pause)
        has_come = any(not let_in for let_in in said or ())
        if not self._is_counted or has_come or (said and not self._others):
            self._count()
        if self._others and self._clock() - self._told >= SECONDS:
            self._tell()

    def _tell(self) -> None:
        self._told = self._clock()
        let_in = self._quotas.to_tell(MOST_TOLD)
        if not let_in:
            return
        if self._told - self._counted >= COUNT_SECONDS:
            self._count()
        if self._others:
            self._rates.tell(let_in)

    def _count(self) -> None:
        self._is_counted = False
        self._counted = self._clock()
        self._others = max(0, self._rates.processes() - 1)
        self._is_counted = True
        self._quotas.share(self._others)

    def _run(self) -> None:
        was_away = False
        while True:
            try:
                self.turn()
                was_away = False
            except ServioticyError as error:
                if not was_away:
                    log.warning("rates_not_shared", extra={"why": str(error)})
                was_away = True
                time.sleep(SECONDS)
            except Exception:  # without this thread each process would give a whole quota
                log.exception("rates_not_shared")
                time.sleep(SECONDS)
