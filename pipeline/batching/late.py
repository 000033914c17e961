"""Taking up what has been put off, in order of the log, tenant by tenant."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pipeline.batching.batches import Batches
from pipeline.batching.beside import Beside
from pipeline.batching.intake import Intake
from pipeline.changes.control import Control
from pipeline.limits import MAX_BATCH_BYTES
from pipeline.sharing.fairness import Fairness
from pipeline.state.excerpt import Excerpt
from pipeline.state.partition import Partition
from pipeline.work import LoggedUpdate, Row, Work
from servioticy.domain.records import ControlRecord, LogRecord
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
        self._begun_at = partition.progress.offset

    def take_up(self, tenant: int, max_updates: int, *, at_once: bool = False) -> None:
        """Begin to compute the tenant's oldest records, as many as are done in a short time.

        They go on waiting while their component is loaded, unless it is loaded `at_once`.
        Nothing else is under way.
        """
        # By its trees alone: what a commit takes is the less of each update the more there are.
        fit = int(self._fairness.slice_seconds / max(SHORTEST, self._pace.of_tree(tenant)))
        most = min(max_updates, max(1, fit))
        found = self._partition.store.put_off(
            self._partition.number, tenant, most, MAX_BATCH_BYTES
        )
        if not found:
            del self._partition.waiting[tenant]
            return
        first = self._intake.read(_row(found[0]))
        if isinstance(first, ControlRecord):
            self._take_up_control(found[0], first)
            return
        began = time.monotonic()
        self._take_up_updates(found, first, at_once=at_once)
        self._partition.pop_loading()  # all of it is this tenant's
        self._shares.charge({tenant: time.monotonic() - began})

    def finish(self, max_updates: int) -> None:
        """Compute all that waits: it is not to come behind what the next partition computes."""
        self._beside.settle()
        while self._partition.waiting:
            self.take_up(next(iter(self._partition.waiting)), max_updates, at_once=True)
            self._beside.settle()

    def _take_up_updates(
        self, records: Sequence[PutOff], first: LogRecord | None, *, at_once: bool
    ) -> None:
        """In order, up to a control record, or to one whose component is being loaded.

        The `first` record has been read.
        """
        here = self._partition.progress
        updates: list[LoggedUpdate] = []
        done: list[PutOff] = []
        held: list[PutOff] = []
        self._partition.prepare([each.service_object for each in records])
        for each in records:
            record = first if each is records[0] else self._intake.read(_row(each))
            found = self._intake.admit_late(each, record, at_once=at_once)
            if isinstance(found, LoggedUpdate):
                updates.append(found)
            elif found is None:  # it is a dead letter, or elsewhere: once is enough
                done.append(each)
            elif isinstance(found, PutOff) and found.held:
                held.append(found)
            else:
                break
        keys = {each.key for each in updates}
        work = Work(updates, here, (), [each for each in records if each.key in keys])
        # It is lent before anything else may be forgotten.
        shares = self._shares
        excerpt = Excerpt(self._partition, work, lambda: shares.contested) if updates else None
        if done:
            self._batches.run(Work((), here, (), done))
        if held:
            self._batches.run(Work((), here, held))
            self._partition.count_waiting()
        if excerpt is not None:
            # All is sent that these components have emitted before the first record that waits.
            before = max(updates[0].offset, self._begun_at)
            self._beside.start(work, excerpt, before)

    def _take_up_control(self, late: PutOff, record: ControlRecord) -> None:
        owner = self._partition.owner_of(late.service_object)
        if owner is None or owner == self._partition.number:
            self._batches.guard(_row(late), lambda: self._apply(record, late), (late,))
        else:
            self._batches.guard(_row(late), lambda: self._forward(owner, record, late), (late,))

    def _forward(self, owner: int, record: ControlRecord, late: PutOff) -> None:
        self._intake.forward(owner, record)
        self._batches.run(Work((), self._partition.progress, (), (late,)))

    def _apply(self, record: ControlRecord, late: PutOff) -> None:
        began = time.monotonic()
        self._control.apply_late(record, late)
        self._partition.count_waiting()
        self._partition.emitted_late.append(late.key)
        self._shares.charge({late.tenant: time.monotonic() - began})


def _row(late: PutOff) -> Row:
    """The record as the log had it."""
    return Row(late.offset, late.record)
