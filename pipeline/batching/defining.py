"""Definitions that follow each other in the log: those of a fleet take effect together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence, Set
from itertools import pairwise

from pipeline.changes.control import Control
from pipeline.limits import CONTESTED_DOCUMENTS_BYTES, DOCUMENTS_BYTES
from pipeline.sharing.shares import Shares
from pipeline.state.partition import Partition
from servioticy.domain.records import DefinitionRecord, LogRecord

log = logging.getLogger("servioticy.pipeline")

TRIES = 3
"""So often it is seen that definitions which follow each other cannot take effect together, before
the others that have come with them are taken one by one."""


class Defining:
    """Lets definitions of one partition take effect."""

    def __init__(
        self,
        partition: Partition,
        control: Control,
        shares: Shares,
        passes: tuple[type[Exception], ...],
        clock: Callable[[], float],
    ) -> None:
        """`passes` are the errors that no record is to blame for."""
        self._partition = partition
        self._control = control
        self._shares = shares
        self._passes = passes
        self._clock = clock

    def take(self, offset: int, records: Sequence[DefinitionRecord], but: Set[int]) -> int:
        """Let the first of these take effect together, but none of some tenants; how many have."""
        if self._partition.decided.trees:
            return 0
        began = self._clock()
        most = CONTESTED_DOCUMENTS_BYTES if self._shares.contested else DOCUMENTS_BYTES
        try:
            done = self._control.apply_together(offset, records, but, most)
        except self._passes:
            raise
        except Exception:
            log.exception("definitions_failed")  # one by one it is found which of them it is
            return 0
        self._shares.saw(done.tenants)
        each = (self._clock() - began) / max(1, sum(done.looked_at.values()))
        self._shares.charge({tenant: each * size for tenant, size in done.looked_at.items()})
        return len(done.tenants)


def stretches(
    records: Sequence[LogRecord | None],
) -> tuple[Sequence[DefinitionRecord], int]:
    """The definitions that these begin with, and where next several of them follow each other."""
    fleet: list[DefinitionRecord] = []
    for each in records:
        if not isinstance(each, DefinitionRecord):
            break
        fleet.append(each)
    pairs = pairwise(records[len(fleet) :])
    several = (all(isinstance(each, DefinitionRecord) for each in pair) for pair in pairs)
    end = next((number for number, each in enumerate(several) if each), len(records))
    return fleet, min(max(1, len(fleet) + end), len(records))
