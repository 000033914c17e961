"""Removing updates that are older than they are kept (decision 0052): readers see none of them.

As what was deleted, a little at a time: when nothing else is to be done, and as a small part of
the time while updates come. One tenant after the other, a piece of each.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable

from pipeline.sharing.shares import Shares
from servioticy.ports.expiry import Expiry

log = logging.getLogger("servioticy.pipeline")

SLICE_SECONDS = 0.01
"""After so long others come first; one piece more may begin just before."""

SHARE = 0.1
"""Of the partition's time, while there is other work."""

REST_SECONDS = 60.0
"""Between two rounds over all tenants."""

TENANTS = 1000
"""That take turns; the next ones come after them."""

PIECE_STREAMS = 100
PIECE_UPDATES = 500
PIECE_BYTES = 1024 * 1024
"""Of one transaction: some milliseconds."""


class Expiring:
    """Does a slice of it now and then, for the tenants of a partition's turn."""

    def __init__(
        self,
        partition: int,
        store: Expiry,
        shares: Shares,
        heals: tuple[type[Exception], ...],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._partition = partition
        self._store = store
        self._shares = shares
        self._heals = heals
        self._clock = clock
        self._due = clock()
        self._turns: deque[tuple[int, int]] = deque()
        """Of each tenant the number of the stream behind which to go on."""
        self._last = 0
        """The tenant behind which others are still to come in this round."""

    def left(self) -> float:
        """Return in how many seconds there is something to do."""
        return max(0.0, self._due - self._clock())

    def work(self, *, idle: bool) -> None:
        """A slice, if it is time for one. `idle`: nobody waits for anything else.

        Raises what heals by waiting. After a bug of ours the next round begins anew.
        """
        began = now = self._clock()
        if now < self._due:
            return
        try:
            while now - began < SLICE_SECONDS and self._has_turns():
                tenant, after = self._turns.popleft()
                self._piece(tenant, after)
                before, now = now, self._clock()
                if not idle:
                    self._shares.charge({tenant: now - before})
        except self._heals:
            raise
        except Exception:
            log.exception("expiry_failed", extra={"partition": self._partition})
            self._turns.clear()
            self._last = 0
        now = self._clock()
        pause = REST_SECONDS if not self._turns and not self._last else 0.0
        self._due = now + max(pause, 0.0 if idle else (now - began) * (1 / SHARE - 1))

    def _has_turns(self) -> bool:
        """Whether it is somebody's turn; if not, the round has ended."""
        if not self._turns:
            found = self._store.forgetful(self._partition, self._last, TENANTS)
            self._turns.extend((tenant, 0) for tenant in found)
            self._last = found[-1] if found else 0
        return bool(self._turns)

    def _piece(self, tenant: int, after: int) -> None:
        try:
            done = self._store.expire(tenant, after, PIECE_STREAMS, PIECE_UPDATES, PIECE_BYTES)
        except self._heals:
            self._turns.appendleft((tenant, after))
            raise
        if done.reached is not None:
            self._turns.append((tenant, done.reached))
