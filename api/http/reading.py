"""What reads take of the processor, by tenant: counted in this process, stored now and then.

What a process has not stored when it is killed is left out, in favour of who read.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter

from servioticy.errors import Unavailable
from servioticy.ports.statements import Statements

SECONDS = 10.0
"""Between two times of storing: no read waits for it, and none is a question more."""
MAX_TENANTS = 10_000
"""Of whom it is counted until it is stored; what others read meanwhile is left out."""
ABOUT_QUOTAS = frozenset({"/usage", "/quotas", "/private/health"})
"""Who has used up a quota can see which."""

log = logging.getLogger("api")


def is_counted(path: str) -> bool:
    """Tell whether reading this counts, and ends with the quota."""
    return (path.rstrip("/") or "/") not in ABOUT_QUOTAS


class Reading:
    """Counts in the threads that read; another one stores."""

    def __init__(self, stored: Statements) -> None:
        self._stored = stored
        self._lock = threading.Lock()
        self._counted: Counter[int] = Counter()
        """microseconds that are not stored yet"""

    def note(self, tenant: int, seconds: float) -> None:
        """A read of this tenant has taken so much."""
        with self._lock:
            if tenant in self._counted or len(self._counted) < MAX_TENANTS:
                self._counted[tenant] += round(seconds * 1e6)

    def seconds(self, tenant: int) -> float:
        """Return what was taken and is not stored yet."""
        with self._lock:
            return self._counted[tenant] / 1e6

    def settle(self) -> None:
        """Store what has been counted; where the store is away it is counted on."""
        with self._lock:
            counted, self._counted = self._counted, Counter()
        if not counted:
            return
        values = {"tenants": list(counted), "read_us": list(counted.values())}
        try:
            with self._stored.together():
                self._stored.rows("read", **values)
                self._stored.rows("read_in_all", **values)
        except Unavailable as error:
            log.warning("reads_not_noted", extra={"why": str(error)})
            with self._lock:
                self._counted.update(counted)

    def start(self) -> None:
        """Store now and then, in a thread of this process until it ends."""
        threading.Thread(target=self._run, name="reading", daemon=True).start()

    def _run(self) -> None:
        while True:
            time.sleep(SECONDS)
            try:
                self.settle()
            except Exception:  # without this thread nobody's reads would be counted
                log.exception("reads_not_noted")
