"""How busy partitions are, and what moves so that they are alike."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from servioticy.errors import Unavailable
from servioticy.rebalancing import Done, Rebalancing, told


class Balancing:
    """Plans and moves for one who asks at a time: all use of two hours is summed up for it."""

    def __init__(self, rebalancing: Rebalancing) -> None:
        self._rebalancing = rebalancing
        self._lock = threading.Lock()

    def planned(self, most: int) -> dict[str, Any]:
        """Return what at most so many moves would bring. Raises Unavailable."""
        with self._alone():
            return told(Done(self._rebalancing.plan(most), (), ()))

    def moved(self, most: int) -> dict[str, Any]:
        """Return what has been moved. Raises Unavailable."""
        with self._alone():
            return told(self._rebalancing.carry_out(most))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise Unavailable("it is being planned, or moved, for somebody else; try again later")
        try:
            yield
        finally:
            self._lock.release()
