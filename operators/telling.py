"""Tells the store how programs are on this node, for those whose they are."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from operators.line import Running
from operators.registry import Registry
from operators.warming import Warming
from servioticy.errors import ServioticyError

log = logging.getLogger(__name__)

SECONDS = 5.0
AGAIN = 6
"""Each so-manieth time it is told though nothing is other than before: else it would be old."""
MOST = 1000
"""Programs that are told of, those that run before those that have ended."""


class Telling:
    """Tells again and again, in a thread of its own, until it is closed; between, it listens."""

    def __init__(
        self,
        registry: Registry,
        node: str,
        running: Callable[[], Sequence[Running]],
        warming: Warming | None = None,
        seconds: float = SECONDS,
        spent: Callable[[], Mapping[tuple[int, str], float]] = dict,
    ) -> None:
        """`node`: its name. Without `warming` nobody is listened to.

        `spent`: what programs have used since the last call of which no reply tells.
        """
        self._registry = registry
        self._node = node
        self._running = running
        self._warming = warming
        self._seconds = seconds
        self._spent = spent
        self._unpaid: dict[tuple[int, str], float] = {}
        self._told: Sequence[Running] = []
        self._looks = 0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="operators-tell", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Tell no more."""
        self._closed.set()
        self._thread.join()

    def tell(self) -> None:
        """Tell if there is anything to tell, and charge what there is. Raises Unavailable."""
        self._charge()
        found = sorted(self._running(), key=lambda each: each.state == "ended")[:MOST]
        self._looks += 1
        if found != self._told or (found and self._looks % AGAIN == 0):
            self._registry.tell(self._node, found)
            self._told = found

    def _charge(self) -> None:
        for key, seconds in self._spent().items():
            self._unpaid[key] = self._unpaid.get(key, 0.0) + seconds
        if self._unpaid:
            self._registry.spend(self._unpaid)
            self._unpaid.clear()

    def _run(self) -> None:
        at = time.monotonic() + self._seconds
        while not self._closed.is_set():
            left = at - time.monotonic()
            try:
                if left <= 0:
                    at += self._seconds
                    self.tell()
                elif self._warming is None:
                    self._closed.wait(left)
                else:
                    self._warming.turn(left)
            except ServioticyError as error:
                log.info("operators_not_told", extra={"reason": str(error)[:200]})
                self._closed.wait(self._seconds)
            except Exception:
                log.exception("operators_telling_failed")
                self._closed.wait(self._seconds)
