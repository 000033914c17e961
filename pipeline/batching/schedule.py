"""Decides what of the log is computed now, and what later, in one partition.

Records are taken in order of the log. While several tenants are active, the updates of one
that has used more than its share of the partition's time are put off: stored as they are,
in the transaction that moves progress past them, and taken up when the tenant has time
again (`late.py`). So is the rest of a burst that has filled half a batch, but of a backlog; and a
piece for which the others of its batch did not wait, which goes on meanwhile; and what it is known
of that they would not: its tenant's updates have cost too much, or its process has to be started.
What a tenant has waiting is taken in order of the log, and so is all that follows it, control
records too. What comes out equals the serial order of a log in which the updates of that tenant
had come later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Set

from pipeline.batching import defining
from pipeline.batching.batches import Batches
from pipeline.batching.beside import Beside
from pipeline.batching.cutting import Cutting
from pipeline.batching.dead_letters import DeadLetters
from pipeline.batching.flow import Flight, Flow
from pipeline.batching.forming import FormingBatch
from pipeline.batching.intake import Admitted, Intake
from pipeline.batching.late import LateWork
from pipeline.batching.means import STORING_THREADS, Means
from pipeline.batching.pieces import Pieces
from pipeline.batching.slots import Slots
from pipeline.batching.uncomputed import Uncomputed
from pipeline.changes.control import Control
from pipeline.changes.expiring import Expiring
from pipeline.changes.purging import Purging
from pipeline.changes.slices import Slices
from pipeline.engine import Engine
from pipeline.limits import MAX_WAITING
from pipeline.sharing.fairness import Fairness
from pipeline.state.asking import Asking
from pipeline.state.partition import Partition
from pipeline.work import LoggedUpdate, Row, Work
from servioticy.domain.model import SensorUpdate
from servioticy.domain.records import (
    AcquireRecord,
    BeginRecord,
    ControlRecord,
    EndRecord,
    LogRecord,
    OwnRecord,
    ReadingRecord,
    ReleaseRecord,
)
from servioticy.ports.output import Output
from servioticy.ports.put_off import PutOff, TreeKey

QUIET_SECONDS = 1.0
"""The longest wait for rows, where nothing else is known that will be to do."""

WAITING_SECONDS = 0.02
"""Between two looks at what has been put off, where nothing of it may be taken yet."""

BUSY_SECONDS = 0.002
"""Between two looks at what is stored beside."""


class Schedule:
    """Takes rows of one partition as long as all goes well; the task mends what does not."""

    def __init__(
        self,
        partition: Partition,
        output: Output,
        engine: Engine,
        fairness: Fairness,
        max_updates: int,
        means: Means,
        new_output: Callable[[], Output],
    ) -> None:
        """`max_updates` of one batch, which may be fewer than the engine's for a while.

        What is computed late is sent by a `new_output`.
        """
        dead_letters = DeadLetters(partition.number, output, engine.passes)
        self._partition = partition
        self._output = output
        self._asking = Asking(partition, means.programs, engine.clock, engine.now, engine.limits)
        self._fairness = fairness
        self._shares = fairness.shares
        self._clock = engine.clock
        self._now = engine.now
        self._backlog = engine.backlog
        self._is_backlog = False
        self._means = means
        self.max_updates = max_updates
        slots = Slots[Flight](means.askers, engine.processors, engine.clock, lambda: means.wake())
        self._flow = Flow(slots, engine.passes, engine.clock)
        self._intake = Intake(partition, output, dead_letters, engine.passes)
        self._control = Control(partition, output, engine.sleep)
        self._slices = Slices(partition.store, engine.clock, self._is_awaited)
        self._defining = defining.Defining(
            partition, self._control, fairness.shares, engine.passes, engine.clock
        )
        cutting = Cutting(fairness.shares, engine.clock)
        pieces = Pieces(partition, engine, fairness, dead_letters, cutting, self._flow)
        self._pieces = pieces
        self._uncomputed = Uncomputed(partition, output, engine, dead_letters)
        self._late = LateWork(
            partition,
            self._intake,
            pieces,
            self._flow,
            self._control,
            self._slices,
            self._uncomputed,
            engine,
            fairness,
            output,
            *[
                Beside(partition, engine, fairness, new_output, means.storing)
                for _ in range(STORING_THREADS)
            ],
        )
        self._batches = Batches(
            partition,
            output,
            engine,
            fairness,
            pieces,
            self._flow,
            self._late.adopt,
            self._others_wait,
        )
        self._purging = Purging(partition, fairness.shares, engine.heals, engine.clock)
        self._expiring = Expiring(
            partition.number, partition.store, fairness.shares, engine.heals, engine.clock
        )

    def take(self, rows: Sequence[Row]) -> None:
        """Work on rows that follow the stored progress.

        Where nobody else is active, what comes first of them need not wait until there is time to
        load the components of all; and nothing is put off for that.
        """
        self._is_backlog = self._pieces.is_backlog = len(rows) >= self._backlog
        contested = self._shares.contested
        self._partition.spare_who_rests(self._put_off_now() if contested else frozenset())
        records = [self._intake.read(row) for row in rows]
        if not rows:
            self._take((), ())
        tries = defining.TRIES
        while rows:
            fleet, end = defining.stretches(records)
            done = 0
            if len(fleet) > 1 and tries:
                done, end = self._defining.take(rows[0].offset, fleet, self._put_off_now()), 1
                tries -= not done
            if not done:
                done = self._take_ready(rows[:end], records[:end])
            rows, records = rows[done:], records[done:]

    def _take_ready(self, rows: Sequence[Row], records: Sequence[LogRecord | None]) -> int:
        """Work on the first of these rows, as far as they need not wait; how many these are."""
        ready = self._intake.prepare(records)
        self._note_who_is_there(records)
        if ready < len(rows) and self._somebody_waits(records[ready:]):
            ready = len(rows)
        self._take(rows[:ready], records[:ready])
        return ready

    def _note_who_is_there(self, records: Sequence[LogRecord | None]) -> None:
        """Note whose records these are: what a newcomer sends at once is not its alone to take.

        Noted with its first batch, that one would be as long as if nobody else were there.
        """
        sent = {each.service_object for each in records if isinstance(each, OwnRecord)}
        tenants = {self._partition.tenant_here(each) for each in sent}
        self._shares.saw(each for each in tenants if each is not None)

    def _somebody_waits(self, records: Sequence[LogRecord | None]) -> bool:
        """Whether others than whose update is the first are active, or have sent something."""
        own = [each if isinstance(each, OwnRecord) else None for each in records]
        tenant = None
        if own[0] is not None and not self._shares.contested:
            tenant = self._partition.tenant_here(own[0].service_object)
        if tenant is None or self._has_others(tenant, own):
            return True
        return self._others_wait(tenant)

    def _take(self, rows: Sequence[Row], records: Sequence[LogRecord | None]) -> None:
        batch = self._new_batch(self._partition.progress)
        put_off, filled = self._put_off_now(), set[int]()
        for row, read in zip(rows, records, strict=True):
            end = TreeKey(row.offset + 1)
            for record in self._admit(row, read):
                if not isinstance(record, LoggedUpdate | PutOff):
                    self._run(batch)
                    self._take_control(record, row)
                    batch, put_off = self._new_batch(end), self._put_off_now() | filled
                    continue
                put_off |= self._place(record, batch, put_off)
                if batch.is_full(self.max_updates):
                    if self._shares.contested and not self._is_backlog:
                        filled |= batch.most_of()
                    self._run(batch)
                    batch, put_off = self._new_batch(batch.end), self._put_off_now() | filled
            batch.end = end
        self._run(batch)

    def _place(
        self, record: LoggedUpdate | PutOff, batch: FormingBatch, put_off: Set[int]
    ) -> Set[int]:
        """Put a tree into the batch, or off; whose records are put off from now on."""
        end = (
            TreeKey(record.offset, record.tree + 1) if record.tree else TreeKey(record.offset + 1)
        )
        if isinstance(record, LoggedUpdate):
            if not self._comes_later(record, put_off):
                batch.add(record, end)
                return frozenset()
            if self._is_too_much(record):
                batch.leave_out(record, end)
                return frozenset()
            record = record.as_put_off()
        if self._is_too_much(record):
            batch.end = end
            return frozenset()
        batch.postpone(record, end)
        return frozenset() if record.held else frozenset((record.tenant,))

    def _is_too_much(self, record: LoggedUpdate | PutOff) -> bool:
        """Whether it came over a border, and too much of its tenant waits already."""
        if isinstance(record, LoggedUpdate) and record.is_tick:
            return False
        waits = self._partition.waiting.get(record.tenant, 0)
        held = self._partition.awaiting.get(record.tenant, 0)
        return record.tree != 0 and waits + held >= MAX_WAITING

    def go_on(self) -> None:
        """Note what has been computed late; begin with a little more of what was put off.

        While only one tenant is active nobody is there to wait for it: then as much as fits a
        slice is computed at once, so that what comes need not be put off any longer.
        """
        ends = self._clock() + self._fairness.slice_seconds
        self._partition.give_way(self._is_awaited)
        while True:
            self._late.look()
            waiting = self._partition.waiting
            self._shares.saw(waiting)
            overdue = self._slices.overdue()
            if overdue is not None and overdue not in self._late.tenants:
                self._late.take_up(overdue, self.max_updates)
            tenant = self._late.next(waiting.keys() - self._shares.over() - {overdue})
            before = waiting[tenant] if tenant is not None else 0
            if tenant is not None:
                self._late.take_up(tenant, self.max_updates)
                self._late.look()
            if tenant is None or self._shares.contested:
                return
            self._late.settle()
            is_loading = self._partition.waiting[tenant] == before
            if is_loading or self._clock() >= ends:
                return

    @property
    def has_work(self) -> bool:
        """Whether there is something to do though no rows come."""
        partition = self._partition
        is_time = not partition.times.left(self._now() * 1000) or not self._asking.left()
        is_left = partition.to_purge or not self._expiring.left()
        return self.is_busy or bool(partition.waiting) or is_left or is_time

    @property
    def is_busy(self) -> bool:
        """Whether something is computed late, or has not been noted yet."""
        return bool(self._late.tenants)

    @property
    def is_computing(self) -> bool:
        """Whether there is nothing to do but wait for what is computed late."""
        return self._flow.is_computing

    def wake(self) -> None:
        """Have the times come that composites have set themselves, and what programs answer."""
        records = self._partition.times.come(self._now() * 1000)
        self._intake.forward(self._partition.number, *records)
        for answer in self._asking.go_on():
            # Nobody waits for that: what is lost is asked again.
            self._output.send_to_log(self._partition.number, answer)

    def settle(self) -> None:
        """Wait until nothing is computed late. Raises what it ended with."""
        self._late.settle()

    def withdraw(self) -> None:
        """Forget what is computed late; of it no more is stored when this returns."""
        self._late.withdraw()

    def _is_awaited(self) -> bool:
        """Whether records have come, of which some may be of others than who has a turn now.

        Of a backlog nobody is served quickly anyway.
        """
        is_contested = self._shares.contested and not self._is_backlog
        return is_contested and bool(self._means.arrivals())

    def _others_wait(self, tenant: int) -> bool:
        """Whether records of others have come, or are to be computed late."""
        if self._partition.waiting.keys() - {tenant}:
            return True
        records = [self._intake.glance(row) for row in self._means.arrivals()]
        # There is nothing else to do.
        self._partition.prepare([each.service_object for each in records if each is not None])
        return self._has_others(tenant, records)

    def _has_others(self, tenant: int, records: Sequence[OwnRecord | None]) -> bool:
        """Whether any of these is not the tenant's, or of nobody that is known."""
        whose = self._partition.tenant_here
        return any(each is None or whose(each.service_object) != tenant for each in records)

    def purge(self, *, idle: bool) -> None:
        """Remove a little of what is deleted, erased or too old; `idle`: no rows have come."""
        idle = idle and not self._partition.waiting
        self._purging.work(idle=idle)
        self._expiring.work(idle=idle)

    def patience(self) -> float:
        """Seconds to wait for rows before something else is to be done."""
        if self._flow.is_working:
            return 0.0
        if self._late.is_storing:
            return BUSY_SECONDS
        waiting = self._partition.waiting.keys() - self._late.tenants
        if waiting:
            return WAITING_SECONDS if self._shares.over() >= waiting or self.is_busy else 0.0
        if self._partition.to_purge and not self.is_busy:
            return 0.0
        left = self._partition.times.left(self._now() * 1000) / 1000
        return min(QUIET_SECONDS, left, self._expiring.left(), self._asking.left())

    def _new_batch(self, end: TreeKey) -> FormingBatch:
        return FormingBatch(end, self._shares, self._fairness.slice_seconds)

    def _put_off_now(self) -> Set[int]:
        """The tenants whose records are put off: over their share, or with others waiting."""
        waits = self._partition.waiting.keys() | self._late.tenants
        return frozenset(self._shares.over() | waits)

    def _admit(self, row: Row, read: LogRecord | None) -> Sequence[Admitted]:
        """What the record is here. What subscribers know of already is loaded at once."""
        decided = self._partition.decided.begins(row.offset)
        if decided:
            self._late.settle()
        return self._intake.admit(row, read, at_once=decided)

    def _comes_later(self, update: LoggedUpdate, put_off: Set[int]) -> bool:
        """Whether an update is put off, as its tenant's are.

        Not what subscribers know of already: it was not put off the first time.
        """
        decided = self._partition.decided
        if decided.trees and update.is_stored:
            (root,) = update.roots
            decided.meets(update.offset, update.tenant, SensorUpdate(*root[:3]))
        if decided.covers(update.offset, update.tenant, update.roots[0].path):
            self._slices.drop(update.tenant)  # what is stored meanwhile would wait for its rows
            return False
        return update.tenant in put_off or self._is_late(update)

    def _is_late(self, update: LoggedUpdate) -> bool:
        """Whether it is known already that others would not wait for it."""
        if not self._shares.contested or not self._pieces.is_slow(update.tenant):
            return False
        graph = self._partition.graph
        return any(graph.stream(root.origin).entries for root in update.roots)

    def _is_long(self, record: ControlRecord) -> bool:
        """Whether others would wait for it; not where subscribers may know what follows it."""
        contested = self._shares.contested and not self._partition.decided.trees
        return self._slices.is_long(record, contested=contested)

    def _let_move(self, record: ReleaseRecord | AcquireRecord) -> None:
        """Compute all that waits of those that leave; and what is under way of those that come."""
        owners = self._partition.store.owners(record.service_objects)
        for tenant in sorted({owner for owner, _partition in owners.values()}):
            if isinstance(record, ReleaseRecord):
                self._late.finish(tenant, self.max_updates)
            else:
                self._late.settle([tenant])

    def _run(self, batch: FormingBatch) -> None:
        end = batch.end.offset
        work = batch.work(self._intake.pop_forwarded(end), self._intake.pop_marked(end))
        self._shares.saw(batch.tenants)
        self._shares.charge(self._partition.pop_loading())
        self._batches.run(work)

    def _take_control(self, record: ControlRecord, row: Row) -> None:
        """Let a control record take effect; behind updates that wait it waits, too."""
        end = TreeKey(row.offset + 1)
        if self._intake.is_repeat(record, row):
            self._batches.run(Work((), end))
            return
        tenant = self._intake.tenant_changing(record)
        if tenant is not None:
            self._shares.saw((tenant,))
        concerned = _concerned(record)
        if tenant is not None and (tenant in self._put_off_now() or self._is_long(record)):
            later = PutOff(row.offset, tenant, concerned[0], row.value or b"")
            if isinstance(record, BeginRecord):
                self._partition.note_beginning(later.record)
            self._batches.run(Work((), end, (later,), (), self._intake.pop_forwarded(end.offset)))
            return
        if isinstance(record, ReleaseRecord | AcquireRecord):
            self._let_move(record)
        began = time.monotonic()
        self._uncomputed.guard(row, lambda: self._control.apply(record, row.offset))
        self._intake.pop_forwarded(end.offset)  # noted with it
        if tenant is not None:
            self._shares.charge({tenant: time.monotonic() - began})


def _concerned(record: ControlRecord) -> Sequence[str]:
    """The Service Objects of this partition that the record is about, one at least."""
    match record:
        case ReleaseRecord() | AcquireRecord():
            return record.service_objects
        case BeginRecord() | EndRecord():
            return record.readers
        case ReadingRecord():
            return tuple(dict.fromkeys(id_ for id_, _ in record.sources)) or (record.reader,)
    return (record.service_object,)
