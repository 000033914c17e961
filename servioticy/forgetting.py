"""What a program remembers so as not to ask again is forgotten when nobody has used it for long.

All of it is bounded, so a program never grows without end. But what it remembers of a thousand
tenants that are silent is some tens of megabytes, for nobody.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import TypeAlias

from servioticy.garbage import memory_given_back

LOOK_SECONDS = 30.0
"""Between two looks, or a tenth of the time after which something is forgotten."""

log = logging.getLogger("servioticy")

Forgets: TypeAlias = Callable[[float], int]
"""Forgets what was not used for so many seconds; returns how much that was."""


class Forgetting:
    """Looks now and then, in a thread of its own, and gives the system the memory back."""

    def __init__(
        self,
        seconds: float,
        ways: Collection[Forgets],
        give_back: Callable[[], object] = memory_given_back,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._seconds = seconds
        self._ways = ways
        self._give_back = give_back
        self._sleep = sleep

    def start(self) -> None:
        """Look from now on, for as long as this process lives."""
        threading.Thread(target=self._run, name="forgetting", daemon=True).start()

    def look(self) -> None:
        """Forget what is unused for so long."""
        if sum([forget(self._seconds) for forget in self._ways]):
            self._give_back()

    def _run(self) -> None:
        while True:
            self._sleep(min(LOOK_SECONDS, self._seconds / 10))
            try:
                self.look()
            except Exception:  # without this thread nothing would be forgotten any more
                log.exception("forgetting_failed")
