"""Large documents are understood a little at a time, while others are computed.

A definition whose document is large is put off for that, as its tenant's updates are that come
meanwhile: nothing of it is computed by what it was before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from servioticy.domain.pauses import Paused
from servioticy.domain.records import DefinitionRecord
from servioticy.ports.effects import Activate
from servioticy.ports.partition_store import PartitionStore


class _Begun(NamedTuple):
    change: Activate
    work: Paused[object]


class Understanding:
    """What is being understood in one partition, one document of each tenant."""

    def __init__(self, store: PartitionStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._begun: dict[int, _Begun] = {}

    def is_long(self, record: DefinitionRecord) -> bool:
        """Whether others are not to wait until its document is understood."""
        return self._store.understanding(_change(record)) is not None

    def go_on(self, tenant: int, record: DefinitionRecord, seconds: float) -> bool:
        """Understand some more of it, for about so many seconds; whether nothing is left."""
        until = self._clock() + seconds
        change = _change(record)
        begun = self._begun.get(tenant)
        if begun is None or begun.change != change:
            work = self._store.understanding(change)
            if work is None:
                return True
            begun = self._begun[tenant] = _Begun(change, work)
        for _pause in begun.work:
            if self._clock() >= until:
                return False
        del self._begun[tenant]
        return True

    def keep(self, tenants: Iterable[int]) -> None:
        """Forget what is begun of other tenants: nothing of theirs waits any more."""
        for each in self._begun.keys() - set(tenants):
            del self._begun[each]


def _change(record: DefinitionRecord) -> Activate:
    return Activate(record.service_object, record.version, record.change)
