"""Taking up what has been put off, in order of the log, tenant by tenant."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pipeline.batching.batches import Batches
from pipeline.batching.beside import Beside
from pipeline.batching.intake import Intake
from pipeline.control import Control
from pipeline.limits import MAX_BATCH_BYTES
from pipeline.sharing.fairness import Fairness
from pipeline.state.excerpt import Excerpt
from pipeline.state.partition import Partition
from pipeline.work import LoggedUpdate, Row, Work
from servioticy.domain.records import (
    ControlRecord,
    UnreadableRecord,
    UpdateRecord,
    read_record,
)
from servioticy.ports.partition_store import PutOff

SHORTEST = 0.0001
"""Seconds that an update takes at least."""


class LateWork:
    """Computes records of one partition that had been put off: updates beside its batches."""

    def __init__(
        self,
        partition: Partition,
        intake: Intake,
        batches: Batches,
        beside: Beside,
        control: Control,
        fairness: Fairness,
    ) -> None:
        self._partition = partition
        self._intake = intake
        self._batches = batches
        self._beside = beside
        self._control = control
        self._fairness = fairness
        self._shares = fairness.shares
        self._pace = fairness.pace
        self._begun_at = partition.next_offset

    def take_up(self, tenant: int, max_updates: int, *, at_once: bool = False) -> None:
        """Begin to compute the tenant's oldest records, as many as are done in a short time.

        They go on waiting while their component is loaded, unless it is loaded `at_once`.
        Nothing else is under way.
        """
        # By its scripts alone: what a commit takes is the less of each update the more there are.
        fit = int(self._fairness.slice_seconds / max(SHORTEST, self._pace.of_scripts(tenant)))
        most = min(max_updates, max(1, fit))
        found = self._partition.store.put_off(
            self._partition.number, tenant, most, MAX_BATCH_BYTES
        )
        if not found:
            del self._partition.waiting[tenant]
        elif _control_record(found[0]) is None:
            began = time.monotonic()
            self._take_up_updates(_until_control(found), at_once=at_once)
            self._partition.pop_loading()  # all of it is this tenant's
            self._shares.charge({tenant: time.monotonic() - began})
        else:
            self._take_up_control(found[0])

    def finish(self, max_updates: int) -> None:
        """Compute all that waits: it is not to come behind what the next partition computes."""
        self._beside.settle()
        while self._partition.waiting:
            self.take_up(next(iter(self._partition.waiting)), max_updates, at_once=True)
            self._beside.settle()

    def _take_up_updates(self, records: Sequence[PutOff], *, at_once: bool) -> None:
        """In order; where they take too long the rest waits for the next time."""
        here = self._partition.next_offset
        updates: list[LoggedUpdate] = []
        done: list[PutOff] = []
        self._partition.prepare([each.service_object for each in records])
        for each in records:
            row = Row(each.offset, each.record)
            found = self._intake.admit(row, self._intake.read(row), late=True, at_once=at_once)
            if isinstance(found, LoggedUpdate):
                updates.append(found)
            elif found is None:  # it is a dead letter, or elsewhere: once is enough
                done.append(each)
            else:
                break
        work = Work(updates, here, (), [each.put_off for each in updates])
        # It is lent before anything else may be forgotten.
        shares = self._shares
        excerpt = Excerpt(self._partition, work, lambda: shares.contested) if updates else None
        if done:
            self._batches.run(Work((), here, (), done))
        if excerpt is not None:
            self._beside.start(work, excerpt, self._emitted_before(updates[0].offset))

    def _emitted_before(self, offset: int) -> int:
        """The offset of the log before which all is that these components have emitted.

        Of a component of one tenant that is before the tenant's first record that waits, whose
        offset this is; or else from before the partition was begun.
        """
        tenants = {
            known.tenant for each in self._partition.lent if (known := self._partition.known(each))
        }
        is_shared = len(tenants) != 1
        return self._partition.next_offset if is_shared else max(offset, self._begun_at)

    def _take_up_control(self, late: PutOff) -> None:
        row, record = Row(late.offset, late.record), _control_record(late)
        owner = self._partition.owner_of(late.service_object)
        if record is not None and owner in (None, self._partition.number):
            self._batches.guard(row, lambda: self._apply(record, late), (late,))
        elif record is not None and owner is not None:
            self._batches.guard(row, lambda: self._forward(owner, record, late), (late,))

    def _forward(self, owner: int, record: ControlRecord, late: PutOff) -> None:
        self._intake.forward(owner, record)
        self._batches.run(Work((), self._partition.next_offset, (), (late,)))

    def _apply(self, record: ControlRecord, late: PutOff) -> None:
        began = time.monotonic()
        self._control.apply_late(record, late)
        self._partition.note_waiting(Work((), self._partition.next_offset, (), (late,)))
        self._partition.emitted_late.append(late.offset)
        self._shares.charge({late.tenant: time.monotonic() - began})


def _control_record(record: PutOff) -> ControlRecord | None:
    """The control record, if it is one."""
    try:
        found = read_record(record.record)
    except UnreadableRecord:  # by a release that reads more strictly
        return None
    return None if isinstance(found, UpdateRecord) else found


def _until_control(records: Sequence[PutOff]) -> Sequence[PutOff]:
    """The records before the first control record."""
    changes = (number for number, each in enumerate(records) if _control_record(each) is not None)
    return records[: next(changes, len(records))]
