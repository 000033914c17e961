"""Removing what was deleted or erased: it is gone for everybody, but its rows are still there.

They may be many, so they go a little at a time: when nothing else is to be done, and as a
small part of the time while updates come, so that it ends.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable

from pipeline.sharing.shares import Shares
from pipeline.state.partition import Partition

log = logging.getLogger("servioticy.pipeline")

SLICE_SECONDS = 0.01
"""After so long others come first; one piece more may begin just before."""

SHARE = 0.1
"""Of the partition's time, while there is other work."""

PIECE_ROWS = 500
PIECE_BYTES = 1024 * 1024
"""Of one transaction: some milliseconds."""


class Purging:
    """Does a slice of it now and then; knows when there is nothing left."""

    def __init__(
        self,
        partition: Partition,
        shares: Shares,
        heals: tuple[type[Exception], ...],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._partition = partition
        self._shares = shares
        self._heals = heals
        self._clock = clock
        self._due = 0.0

    def work(self, *, idle: bool) -> None:
        """A slice, if it is time for one. `idle`: nobody waits for anything else.

        Raises what heals by waiting. A bug of ours leaves the rows until the next start.
        """
        began = now = self._clock()
        if not self._partition.to_purge or (not idle and now < self._due):
            return
        spent: defaultdict[int, float] = defaultdict(float)
        while self._partition.to_purge and now - began < SLICE_SECONDS:
            tenant = self._piece()
            if tenant is None:
                self._partition.to_purge = False
            else:
                before, now = now, self._clock()
                spent[tenant] += now - before
        self._due = now + (now - began) * (1 / SHARE - 1)
        if not idle:
            self._shares.charge(spent)

    def _piece(self) -> int | None:
        number = self._partition.number
        try:
            return self._partition.store.purge(number, PIECE_ROWS, PIECE_BYTES)
        except self._heals:
            raise
        except Exception:
            log.exception("purge_failed", extra={"partition": number})
            return None
