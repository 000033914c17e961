"""Partitions that are added to the log while the query runs: it begins anew with them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from servioticy.errors import Unavailable

log = logging.getLogger("servioticy.pipeline")


class Counting(Protocol):
    """Who knows how many partitions the log has."""

    def partitions(self, timeout_seconds: float) -> int:
        """Return how many there are now. Raises Unavailable."""


class Added:
    """Looks whether there are more partitions than the query reads, and a slot for each."""

    def __init__(self, counting: Counting, slots: Callable[[], int], partitions: int) -> None:
        """`slots` tells how many tasks can be at work at once."""
        self._counting = counting
        self._slots = slots
        self._told = 0
        self.partitions = partitions
        """So many the query is to read."""
        self.fits_beside = False
        """Whether there are slots for tasks of the next query beside those of this one."""

    def look(self) -> bool:
        """Whether the query has to begin anew to read those that have been added.

        Where there are too few slots it goes on with those that it has, and that is told once:
        one without a slot would keep the query from beginning at all.
        """
        try:
            there = self._counting.partitions(1.0)
        except Unavailable:
            return False
        if there <= self.partitions:
            return False
        slots = self._slots()
        if there <= slots:
            self.fits_beside = self.partitions + there <= slots
            self.partitions = there
            return True
        if there != self._told:
            log.error("partitions_without_slots", extra={"partitions": there, "slots": slots})
            self._told = there
        return False
