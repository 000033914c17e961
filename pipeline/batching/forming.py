"""A batch while its updates are put together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pipeline.limits import MAX_BATCH_BYTES
from pipeline.sharing.shares import Shares
from pipeline.work import Forwarded, LoggedUpdate, Marked, Work
from servioticy.ports.put_off import PutOff, TreeKey


class FormingBatch:
    """A stretch of the log, record by record, until it is as much as one batch should be."""

    def __init__(self, end: TreeKey, shares: Shares, seconds: float) -> None:
        """It should cost no more than so many seconds, by what updates have cost."""
        self.end = end
        """The place in the log after the last record, or tree of it."""
        self.tenants: set[int] = set()
        """Whose records are in it."""
        self._shares = shares
        self._seconds: defaultdict[int, float] = defaultdict(float)
        self._all_seconds = 0.0
        self._most_seconds = seconds
        self._updates: list[LoggedUpdate] = []
        self._put_off: list[PutOff] = []
        self._behind: list[LoggedUpdate] = []
        self._bytes = 0

    def add(self, update: LoggedUpdate, end: TreeKey) -> None:
        """Add an update to compute."""
        tenant = update.tenant
        self._updates.append(update)
        seconds = self._shares.each(tenant)
        self._seconds[tenant] += seconds
        self._all_seconds += seconds
        self.tenants.add(tenant)
        self._bytes += len(update.record)
        self.end = end

    def leave_out(self, update: LoggedUpdate, end: TreeKey) -> None:
        """Add an update that is not computed: its tenant is too far behind."""
        self._behind.append(update)
        self.tenants.add(update.tenant)
        self.end = end

    def postpone(self, record: PutOff, end: TreeKey) -> None:
        """Add a record to compute later."""
        self._put_off.append(record)
        self.tenants.add(record.tenant)
        self._bytes += len(record.record)
        self.end = end

    def most_of(self) -> set[int]:
        """Return whose updates are half of what it should cost, or more."""
        half = self._most_seconds / 2
        return {tenant for tenant, seconds in self._seconds.items() if seconds >= half}

    def is_full(self, max_updates: int) -> bool:
        """Whether the next update should begin another batch."""
        return (
            len(self._updates) + len(self._put_off) + len(self._behind) >= max_updates
            or self._all_seconds >= self._most_seconds
            or self._bytes >= MAX_BATCH_BYTES
        )

    def work(self, forwarded: Sequence[Forwarded], marked: Sequence[Marked]) -> Work:
        """All of it, with what has come in the stretch from other partitions."""
        return Work(self._updates, self.end, self._put_off, (), forwarded, marked, self._behind)
