"""What of the log is computed now, and what later: the order of work in one partition.

Records are taken in order of the log. While several tenants are active, the updates of one
that has used more than its share of the partition's time are put off: stored as they are,
in the transaction that moves progress past them, and taken up when the tenant has time
again. What a tenant has waiting is taken in order of the log, and so is all that follows it,
control records too. What comes out equals the serial order of a log in which the updates of
that tenant had come later.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence, Set

from pipeline.batches import Batches
from pipeline.control import apply
from pipeline.intake import Intake, Row
from pipeline.limits import MAX_BATCH_BYTES, SLICE_SECONDS, Limits
from pipeline.pace import Pace
from pipeline.partition import Partition
from pipeline.purging import Purging
from pipeline.shares import Shares
from pipeline.stages.transform import Sandbox
from pipeline.work import Taken, Work
from servioticy.messaging.records import (
    ControlRecord,
    ReleaseRecord,
    UnreadableRecord,
    UpdateRecord,
    read_record,
)
from servioticy.ports import Output, PutOff

QUIET_SECONDS = 1.0
WAITING_SECONDS = 0.02
"""Between two looks at what has been put off, where nothing of it may be taken yet."""


class Schedule:
    """Takes rows of one partition as long as all goes well; the task mends what does not."""

    def __init__(
        self,
        partition: Partition,
        sandbox: Sandbox,
        output: Output,
        limits: Limits,
        shares: Shares,
        pace: Pace,
        heals: tuple[type[Exception], ...],
        most_updates: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._partition = partition
        self._output = output
        self._shares = shares
        self._pace = pace
        self.most_updates = most_updates
        self._sleep = sleep
        self._intake = Intake(partition, output, heals)
        self._batches = Batches(partition, sandbox, output, limits, shares, pace, heals)
        self._purging = Purging(partition, shares, heals)

    def take(self, rows: Sequence[Row]) -> None:
        """Work on rows that follow the stored progress."""
        batch = _Batch(self._partition.next_offset, self._pace)
        later = self._later()
        for row in rows:
            record = self._intake.guarded(row)
            end = row.offset + 1
            if isinstance(record, Taken):
                self._partition.decided.meets(record.made)
                if record.record.tenant in later and not self._is_decided(row):
                    batch.put_off(record.record, end)
                else:
                    batch.add(record, end)
            elif isinstance(record, PutOff):
                batch.put_off(record, end)
            elif record is None:
                batch.end = end
            else:
                self._run(batch)
                self._control(record, row)
                batch, later = _Batch(end, self._pace), self._later()
            if batch.is_full(self.most_updates):
                self._run(batch)
                batch, later = _Batch(end, self._pace), self._later()
        self._run(batch)

    def take_late(self) -> None:
        """Take up a little of what has been put off, of the tenant that has most time."""
        waiting = self._partition.waiting
        if not waiting:
            return
        self._shares.saw(waiting)
        tenant = max(waiting, key=self._shares.balance)
        if tenant not in self._shares.over():
            self._take_up(tenant)

    def purge(self, *, idle: bool) -> None:
        """Remove a little of what was deleted or erased; `idle`: no rows have come."""
        self._purging.work(idle=idle and not self._partition.waiting)

    def patience(self) -> float:
        """Seconds to wait for rows before something else is to be done."""
        waiting = self._partition.waiting
        if not waiting:
            return 0.0 if self._partition.to_purge else QUIET_SECONDS
        return WAITING_SECONDS if self._shares.over() >= waiting.keys() else 0.0

    def _is_decided(self, row: Row) -> bool:
        """Whether subscribers know what came of it: then it was not put off the first time."""
        return self._partition.decided.covers(row.offset)

    def _later(self) -> Set[int]:
        """The tenants whose updates are put off now."""
        return self._shares.over() | self._partition.waiting.keys()

    def _run(self, batch: _Batch) -> None:
        forwarded, self._intake.forwarded = self._intake.forwarded, []
        work = batch.work()._replace(forwarded=forwarded)
        self._shares.saw(batch.tenants)
        self._charge_loading()
        self._batches.run(work)

    def _finish_late(self) -> None:
        """What waits here is not to come behind what the next partition computes."""
        while self._partition.waiting:
            self._take_up(next(iter(self._partition.waiting)))

    def _charge_loading(self) -> None:
        spent, self._partition.spent = self._partition.spent, defaultdict(float)
        if spent:
            self._shares.charge(spent)

    def _control(self, record: ControlRecord, row: Row) -> None:
        """Let a control record take effect; behind updates that wait it waits, too."""
        tenant = self._intake.tenant_changing(record)
        if tenant is not None:
            self._shares.saw((tenant,))
        if tenant is not None and tenant in self._later():
            later = PutOff(
                row.offset, tenant, getattr(record, "service_object", ""), row.value or b""
            )
            self._batches.run(Work((), row.offset + 1, (later,)))
            return
        if isinstance(record, ReleaseRecord):
            self._finish_late()
        began = time.monotonic()
        self._batches.guard(
            row, lambda: apply(record, row.offset, self._partition, self._output, self._sleep)
        )
        if tenant is not None:
            self._shares.charge({tenant: time.monotonic() - began})

    def _take_up(self, tenant: int) -> None:
        most = min(self.most_updates, max(1, int(SLICE_SECONDS / self._pace.of(tenant))))
        found = self._partition.store.put_off(
            self._partition.number, tenant, most, MAX_BATCH_BYTES
        )
        if not found:
            del self._partition.waiting[tenant]
        elif _changes(found[0]) is None:
            self._take_up_updates(_until_change(found))
        else:
            self._take_up_change(found[0])

    def _take_up_updates(self, records: Sequence[PutOff]) -> None:
        """In order; where they take too long the rest waits for the next time."""
        here = self._partition.next_offset
        taken: list[Taken] = []
        for each in records:
            found = self._intake.guarded(Row(each.offset, each.record), late=True)
            if isinstance(found, Taken):
                taken.append(found)
            else:  # it is a dead letter, or elsewhere: once is enough
                self._batches.run(Work((), here, (), (each,)))
        if taken:
            self._batches.run(Work(taken, here, (), [each.record for each in taken]))
        self._charge_loading()

    def _take_up_change(self, late: PutOff) -> None:
        row, record = Row(late.offset, late.record), _changes(late)
        owner = self._partition.owner_of(late.service_object)
        if record is not None and owner in (None, self._partition.number):
            self._batches.guard(row, lambda: self._apply_late(record, late), (late,))
        elif record is not None and owner is not None:
            self._batches.guard(row, lambda: self._forward_late(owner, record, late), (late,))

    def _forward_late(self, owner: int, record: ControlRecord, late: PutOff) -> None:
        self._intake.forward(owner, record)
        self._batches.run(Work((), self._partition.next_offset, (), (late,)))

    def _apply_late(self, record: ControlRecord, late: PutOff) -> None:
        began = time.monotonic()
        apply(record, late.offset, self._partition, self._output, self._sleep, late)
        self._partition.note_waiting(Work((), self._partition.next_offset, (), (late,)))
        self._partition.emitted_late.append(late.offset)
        self._shares.charge({late.tenant: time.monotonic() - began})


class _Batch:
    """Work that is being put together."""

    def __init__(self, end: int, pace: Pace) -> None:
        self.end = end
        self._pace = pace
        self._taken: list[Taken] = []
        self._put_off: list[PutOff] = []
        self._seconds = 0.0
        self._bytes = 0
        self.tenants: set[int] = set()

    def add(self, taken: Taken, end: int) -> None:
        """One more update to compute."""
        self._taken.append(taken)
        self.tenants.add(taken.record.tenant)
        self._seconds += self._pace.of(taken.record.tenant)
        self._bytes += len(taken.record.record)
        self.end = end

    def put_off(self, record: PutOff, end: int) -> None:
        """One more record to compute later."""
        self._put_off.append(record)
        self.tenants.add(record.tenant)
        self._bytes += len(record.record)
        self.end = end

    def is_full(self, most_updates: int) -> bool:
        """Whether the next update should begin another batch."""
        return (
            len(self._taken) + len(self._put_off) >= most_updates
            or self._seconds >= SLICE_SECONDS
            or self._bytes >= MAX_BATCH_BYTES
        )

    def work(self) -> Work:
        """All of it."""
        return Work(self._taken, self.end, self._put_off)


def _changes(record: PutOff) -> ControlRecord | None:
    """The control record, if it is one."""
    try:
        found = read_record(record.record)
    except UnreadableRecord:  # by a release that reads more strictly
        return None
    return None if isinstance(found, UpdateRecord) else found


def _until_change(records: Sequence[PutOff]) -> Sequence[PutOff]:
    """Those before the first control record."""
    changes = (number for number, each in enumerate(records) if _changes(each) is not None)
    return records[: next(changes, len(records))]
