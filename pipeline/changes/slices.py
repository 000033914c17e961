"""Control records that take long, a slice at a time, while others are computed.

Large documents are understood so, and what backfills have computed takes its place. Such a record
is put off for that, as its tenant's updates are that come meanwhile: nothing of it is computed by
what was before.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from math import inf
from typing import NamedTuple, TypeAlias

from pipeline.slice import Slice, nobody
from servioticy.domain.pauses import Paused
from servioticy.domain.records import BackfillRecord, ControlRecord, DefinitionRecord
from servioticy.errors import Unavailable
from servioticy.ports.effects import Activate
from servioticy.ports.partition_store import PartitionStore
from servioticy.ports.put_off import PutOff

OVERDUE_SECONDS = 60.0
"""So long a transaction of ours is open with others beside it: then it goes on whatever the share
of its tenant, who owes that."""

Long: TypeAlias = DefinitionRecord | BackfillRecord


class _Begun(NamedTuple):
    late: PutOff
    work: Paused[object]
    since: float | None
    """When its transaction began; None: it has none."""


class Slices:
    """What is under way so in one partition, one record of each tenant."""

    def __init__(
        self,
        store: PartitionStore,
        clock: Callable[[], float] = time.monotonic,
        is_awaited: Callable[[], bool] = nobody,
    ) -> None:
        """`is_awaited` tells whether somebody waits for what follows a slice."""
        self._store = store
        self._clock = clock
        self._is_awaited = is_awaited
        self._begun: dict[int, _Begun] = {}

    def is_long(self, record: ControlRecord, *, contested: bool) -> bool:
        """Whether others are not to wait for it: those who are there, or may be in a moment."""
        if isinstance(record, BackfillRecord):
            return True
        return (
            contested
            and isinstance(record, DefinitionRecord)
            and self._store.understanding(_change(record)) is not None
        )

    def begun(self, tenant: int) -> PutOff | None:
        """Return the record of the tenant that is under way, if there is one."""
        found = self._begun.get(tenant)
        return found and found.late

    def go_on(self, late: PutOff, record: Long, seconds: float) -> bool:
        """Do some more of it, for about so many seconds; whether nothing is left.

        Less where somebody waits, unless it is overdue. Nothing else of the tenant is under way
        so.
        """
        begun = self._begun.pop(late.tenant, None)
        if begun is None:
            work = self._work(record)
            if work is None:
                return True
            swaps = isinstance(record, BackfillRecord)
            begun = _Begun(late, work, self._clock() if swaps else None)
        is_awaited = nobody if self._is_overdue(begun) else self._is_awaited
        now = Slice(self._clock, seconds, is_awaited)
        for _pause in begun.work:
            if now.is_over():
                self._begun[late.tenant] = begun
                return False
        return True

    def overdue(self) -> int | None:
        """Return whose transaction has been open for too long, of several the oldest one's."""
        open_ = [(each.since, n) for n, each in self._begun.items() if each.since is not None]
        _since, tenant = min(open_, default=(inf, 0))
        return tenant if tenant in self._begun and self._is_overdue(self._begun[tenant]) else None

    def _is_overdue(self, begun: _Begun) -> bool:
        return begun.since is not None and self._clock() - begun.since >= OVERDUE_SECONDS

    def drop(self, tenant: int) -> None:
        """Forget what is under way of a tenant: nothing of it has happened."""
        begun = self._begun.pop(tenant, None)
        if begun is not None:
            with contextlib.suppress(Unavailable):  # then it is gone with its connection
                begun.work.close()

    def keep(self, tenants: Iterable[int]) -> None:
        """Drop what is under way of other tenants: nothing of theirs waits any more."""
        for each in self._begun.keys() - set(tenants):
            self.drop(each)

    def _work(self, record: Long) -> Paused[object] | None:
        if isinstance(record, DefinitionRecord):
            return self._store.understanding(_change(record))
        return self._store.swapped(record.job, at_once=False)


def _change(record: DefinitionRecord) -> Activate:
    return Activate(record.service_object, record.version, record.change)
