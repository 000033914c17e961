"""Whose code takes most of the processor, of all that is metered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from servioticy.domain.verdicts import RAN
from servioticy.ports.statements import Statements

BY = ("total", "each")
"""What it is ordered by: all that was taken, or what each computation took."""
ROWS = 20
HOUR = 3_600_000
HOURS = 2
"""The present hour, and the one before: an hour that has just begun tells nothing."""
KEPT_SECONDS = 10.0
"""So long an answer is good for all who ask: what is used is stored as seldom."""


class Slowest:
    """The composite streams that come first; looked up once for all who ask."""

    def __init__(self, stored: Statements, now: Callable[[], int]) -> None:
        self._stored = stored
        self._now = now
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, dict[str, Any]]] = {}

    def told(self, by: str) -> dict[str, Any]:
        """Return them, those that take most first. Raises Unavailable."""
        with self._lock:
            at, told = self._known.get(by, (float("-inf"), {}))
            if at < time.monotonic() - KEPT_SECONDS:
                told = self._found(by)
                self._known[by] = time.monotonic(), told
            return told

    def _found(self, by: str) -> dict[str, Any]:
        since = (self._now() // HOUR - HOURS + 1) * HOUR
        rows = self._stored.rows("slowest", by=by, ran=sorted(RAN), rows=ROWS, **{"from": since})
        return {"from": since, "streams": [_shown(*row) for row in rows]}


def _shown(
    tenant: str, service_object: str, stream: str, used_us: int, ran: int
) -> dict[str, Any]:
    shown = {
        "tenant": tenant,
        "serviceObject": service_object,
        "stream": stream,
        "processorSeconds": used_us / 1e6,
        "computations": ran,
    }
    return {**shown, "eachSeconds": used_us / 1e6 / ran} if ran else shown
