"""A batch while its updates are put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pipeline.limits import MAX_BATCH_BYTES
from pipeline.sharing.pace import Pace
from pipeline.work import Forwarded, LoggedUpdate, Marked, Work
from servioticy.ports.partition_store import PutOff, TreeKey


class FormingBatch:
    """A stretch of the log, record by record, until it is as much as one batch should be."""

    def __init__(self, end: TreeKey, pace: Pace, seconds: float) -> None:
        """It should take no more than so many seconds."""
        self.end = end
        """The place in the log after the last record, or tree of it."""
        self.tenants: set[int] = set()
        """Whose records are in it."""
        self.computed: set[int] = set()
        """Of them those whose updates are computed in it."""
        self._pace = pace
        self._slow: dict[int, bool] = {}
        self._trees: Counter[int] = Counter()
        self._most_seconds = seconds
        self._updates: list[LoggedUpdate] = []
        self._put_off: list[PutOff] = []
        self._behind: list[LoggedUpdate] = []
        self._seconds = 0.0
        self._bytes = 0

    def is_slow(self, tenant: int) -> bool:
        """Whether an update of this tenant may hold up others: asked once for the batch."""
        if tenant not in self._slow:
            self._slow[tenant] = self._pace.is_slow(tenant)
        return self._slow[tenant]

    def add(self, update: LoggedUpdate, end: TreeKey) -> None:
        """Add an update to compute."""
        self._updates.append(update)
        self.computed.add(update.tenant)
        self._seconds += self._pace.of(update.tenant)
        self._trees[update.tenant] += 1
        self.tenants.add(update.tenant)
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
        """Return whose trees are half of what the batch should take of the processor, or more."""
        half, pace = self._most_seconds / 2, self._pace
        return {each for each, times in self._trees.items() if times * pace.of_tree(each) >= half}

    def is_full(self, max_updates: int) -> bool:
        """Whether the next update should begin another batch."""
        return (
            len(self._updates) + len(self._put_off) + len(self._behind) >= max_updates
            or self._seconds >= self._most_seconds
            or self._bytes >= MAX_BATCH_BYTES
        )

    def work(self, forwarded: Sequence[Forwarded], marked: Sequence[Marked]) -> Work:
        """All of it, with what has come in the stretch from other partitions."""
        return Work(self._updates, self.end, self._put_off, (), forwarded, marked, self._behind)
