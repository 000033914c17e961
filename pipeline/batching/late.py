"""What is computed later than its place in the log, in order of the log, tenant by tenant.

Records that had been put off, and pieces of a stretch for which the others did not wait: those
were put off while they went on. Several tenants' are under way at once, each in a piece of its
own. What comes of them is stored and sent by other threads, as that waits for the disk and until
all is acknowledged: all together that is there when one has time. There are two of them: what has
cost little is not to wait for the rows of what has cost much. A definition of which nobody else is
told is put in force so, too: it waits for the disk, and others need not.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from pipeline.batching.beside import Beside, Storing
from pipeline.batching.cutting import Piece
from pipeline.batching.flow import Flight, Flow
from pipeline.batching.intake import Intake
from pipeline.batching.late_turns import LateTurns
from pipeline.batching.pieces import Pieces
from pipeline.batching.uncomputed import Uncomputed
from pipeline.changes.change import Change
from pipeline.changes.control import Control
from pipeline.changes.slices import Slices
from pipeline.engine import Engine
from pipeline.limits import MAX_BATCH_BYTES
from pipeline.sharing.fairness import Fairness
from pipeline.state.partition import Partition
from pipeline.work import LoggedUpdate, Row, Work
from servioticy.domain.contested import CONTESTED_SECONDS
from servioticy.domain.records import BackfillRecord, ControlRecord, DefinitionRecord, LogRecord
from servioticy.errors import Unavailable
from servioticy.ports.output import Output
from servioticy.ports.put_off import PutOff

log = logging.getLogger("servioticy.pipeline")

SHORTEST = 0.0001
"""Seconds that an update takes at least."""


@dataclass(slots=True, eq=False)
class _Late:
    """One tenant's piece."""

    work: Work
    before: int
    """All that was emitted of the log before here has to be acknowledged first: what comes of it
    is sent by another client, and is not to overtake that."""
    flight: Flight | None
    """None: there is nothing to compute."""
    is_stored_alone: bool = False
    """As it, or another one, could not be stored together with others."""
    change: Change | None = None
    """What it is, where nothing of it is computed: a definition that is put in force."""

    @property
    def is_computed(self) -> bool:
        return self.flight is None or self.flight.is_done


class LateWork:
    """The late work of one partition."""

    def __init__(
        self,
        partition: Partition,
        intake: Intake,
        pieces: Pieces,
        flow: Flow,
        control: Control,
        slices: Slices,
        uncomputed: Uncomputed,
        engine: Engine,
        fairness: Fairness,
        output: Output,
        quick: Beside,
        slow: Beside,
    ) -> None:
        """`output` is the partition's own: what is stored beside, in threads of their own the
        `quick` pieces and the `slow` ones, is sent by others."""
        self._partition = partition
        self._intake = intake
        self._pieces = pieces
        self._flow = flow
        self._control = control
        self._slices = slices
        self._uncomputed = uncomputed
        self._engine = engine
        self._fairness = fairness
        self._shares = fairness.shares
        self._partitions_output = output
        self._beside = {False: quick, True: slow}
        self._begun_at = partition.progress.offset
        self._under_way: dict[int, _Late] = {}
        """By tenant."""
        self._storing: list[tuple[Storing, dict[int, _Late]]] = []
        """What of that is being stored, by tenant, or is being sent since."""
        partition.under_way = self._under_way.keys()
        self._turns = LateTurns(partition, pieces, engine.processors)

    @property
    def tenants(self) -> Set[int]:
        """Of whom something is under way."""
        return self._under_way.keys()

    @property
    def is_storing(self) -> bool:
        """Whether something is to be looked at again soon, as nobody tells when it is done."""
        return any(each.is_computed for each in self._under_way.values())

    def next(self, waiting: Iterable[int]) -> int | None:
        """Return who of those who wait is next, if there is room."""
        return self._turns.next(waiting, self._under_way.keys())

    def take_up(self, tenant: int, max_updates: int, *, at_once: bool = False) -> None:
        """Begin to compute the tenant's oldest records, as many as are done in a short time.

        They go on waiting while their component is loaded, or what takes long is done in slices,
        unless that is done `at_once`. Nothing of it is under way.
        """
        self._turns.had(tenant)
        fit = int(self._fairness.slice_seconds / max(SHORTEST, self._shares.each(tenant)))
        most = min(max_updates, max(1, fit))
        begun = self._slices.begun(tenant)
        found = (
            [begun]
            if begun
            else self._partition.store.put_off(
                self._partition.number, tenant, most, MAX_BATCH_BYTES
            )
        )
        if not found:
            del self._partition.waiting[tenant]
            self._partition.senders.pop(tenant, None)
            self._slices.keep(self._partition.waiting)
            return
        first = self._intake.read(_row(found[0]))
        began = time.monotonic()
        if isinstance(first, ControlRecord):
            self._take_up_control(found[0], first, at_once=at_once)
        else:
            self._take_up_updates(tenant, found, first, at_once=at_once)
            self._partition.pop_loading()  # all of it is this tenant's
        self._shares.charge({tenant: time.monotonic() - began})

    def adopt(self, flight: Flight) -> None:
        """Let a piece go on of which the records have been put off."""
        late = [each.as_put_off() for each in flight.work.updates]
        flight.work = Work(flight.work.updates, self._partition.progress, (), late)
        before = max(late[0].offset, self._begun_at)
        self._under_way[flight.tenant] = _Late(flight.work, before, flight)

    def look(self) -> None:
        """Go on with what has ended. Raises what heals by waiting."""
        self._flow.look()
        while self._has_gone_on():
            self._flow.look()

    def _has_gone_on(self) -> bool:
        """Note what is stored, store what has come of pieces, cut those of which nothing has.

        Whether there was anything of it to do.
        """
        for storing, pieces in self._storing:
            if storing.sent.done():
                self._storing.remove((storing, pieces))
                self._note_stored(storing, pieces)
                return True
        for tenant, each in list(self._under_way.items()):
            if each.flight is not None and each.flight.error is not None:
                self._mend(tenant, each, each.flight.error)
                return True
        return self._store_what_is_there()

    def settle(self, tenants: Iterable[int] | None = None) -> None:
        """Wait until nothing is under way of these, or of anybody. Raises what heals."""
        wanted = None if tenants is None else set(tenants)
        while left := [
            each for tenant, each in self._under_way.items() if wanted is None or tenant in wanted
        ]:
            flights = [each.flight for each in left if each.flight is not None]
            self._flow.settle(flights, lambda: False)
            if waits := self._what_is_in_the_way(self._under_way if wanted is None else wanted):
                waits.exception()
            elif any(each.before > self._partitions_output.acknowledged for each in left):
                self._partitions_output.flush()
            self.look()

    def finish(self, tenant: int, max_updates: int) -> None:
        """Compute all that waits of a tenant: it is not to come behind what the next partition
        computes."""
        self.settle([tenant])
        while self._partition.waiting[tenant]:
            self.take_up(tenant, max_updates, at_once=True)
            self.settle([tenant])

    def withdraw(self) -> None:
        """Forget what is under way; of it no more is stored when this returns."""
        self._flow.drop(
            each.flight for each in self._under_way.values() if each.flight is not None
        )
        self._under_way.clear()
        self._slices.keep(())
        storing, self._storing = self._storing, []
        for each, _pieces in storing:
            each.base.withdraw()
        for each, _pieces in storing:
            error = each.sent.exception()
            if error is not None:
                log.info("late_work_withdrawn", extra={"why": str(error)})

    def _begin(self, tenant: int, piece: Piece, before: int) -> None:
        work = piece.work
        flight = self._pieces.begin(work, alone=piece.alone) if work.updates else None
        self._under_way[tenant] = _Late(work, before, flight)

    def _store_what_is_there(self) -> bool:
        """Let all of a kind be stored together that is computed; whether there is anything.

        Nothing else of the kind is being stored then; what is only being sent is in nobody's way.
        """
        return any(self._store_kind(is_slow=is_slow) for is_slow in self._beside)

    def _store_kind(self, *, is_slow: bool) -> bool:
        beside = self._beside[is_slow]
        if beside.is_storing:
            return False
        begun = {tenant for _storing, pieces in self._storing for tenant in pieces}
        done = {
            tenant: each
            for tenant, each in self._under_way.items()
            if each.is_computed and tenant not in begun and self._was_slow(each) is is_slow
        }
        if not done:
            return False
        self._partitions_output.poll()
        before = self._partitions_output.acknowledged
        ready = {tenant: each for tenant, each in done.items() if each.before <= before}
        alone = next(({t: each} for t, each in ready.items() if each.is_stored_alone), None)
        pieces = alone or ready
        if not pieces:
            return False
        late = [each for piece in pieces.values() for each in piece.work.late]
        work = Work((), self._partition.progress, (), sorted(late, key=lambda each: each.key))
        flights = [each.flight for each in pieces.values() if each.flight is not None]
        is_alone = not any(each.is_storing for each in self._beside.values())
        emitted = tuple(self._partition.emitted_late) if is_alone else ()
        change = next(iter(pieces.values())).change
        effect = None if change is None else change.effect
        self._storing.append((beside.store(work, flights, emitted, effect), pieces))
        return True

    def _was_slow(self, late: _Late) -> bool:
        if late.change is not None:
            return True
        return late.flight is not None and self._pieces.was_slow(late.flight)

    def _what_is_in_the_way(self, tenants: Iterable[int]) -> Future[None] | None:
        """What has to be done before more is done of these: theirs, or what others store."""
        wanted = set(tenants)
        theirs = [each.sent for each, pieces in self._storing if pieces.keys() & wanted]
        others = [each.stored for each, _pieces in self._storing if not each.stored.done()]
        return next(iter(theirs + others), None)

    def _mend(self, tenant: int, late: _Late, error: Exception) -> None:
        """A smaller piece of one that has ended in vain, or nothing until its next turn.

        The rest of it waits where it was.
        """
        del self._under_way[tenant]
        if late.flight is not None:
            self._fairness.note([(tenant, late.flight.spending)], 0.0, 0.0)
            late.flight.error = None  # its traceback holds the flight
        if isinstance(error, self._engine.passes):
            raise Unavailable(str(error)) from None
        pieces = self._pieces.instead_of(late.work, error)
        if pieces:
            self._begin(tenant, pieces[0], late.before)

    def _note_stored(self, storing: Storing, pieces: dict[int, _Late]) -> None:
        error = storing.sent.exception()
        if error is None:
            storing.base.give_back()
            for tenant, each in pieces.items():
                if each.flight is not None:
                    self._pieces.ended(each.flight)
                if each.change is not None:
                    self._shares.charge({tenant: storing.seconds})
                    each.change.forget()
                del self._under_way[tenant]
            return
        if isinstance(error, self._engine.passes):
            # Fenced, too: whoever has it now, beginning it tells.
            raise Unavailable(str(error)) from None
        if not isinstance(error, Exception):
            raise error
        if len(pieces) > 1:
            for each in pieces.values():
                each.is_stored_alone = True
            return
        for tenant, each in pieces.items():  # as if it could not be computed
            if each.change is not None:
                self._give_up(tenant, each.work.late[0], error)
                continue
            some = self._pieces.without_culprit(each.work, error)
            self._begin(tenant, some[0], each.before)

    def _take_up_updates(
        self, tenant: int, records: Sequence[PutOff], first: LogRecord | None, *, at_once: bool
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
        if held:
            self._uncomputed.store(Work((), here, held))
            self._partition.count_waiting()
        keys = {each.key for each in updates}
        late = [each for each in records if each.key in keys or each in done]
        if late:
            # All is sent that these components have emitted before the first record that waits.
            before = max(late[0].offset, self._begun_at)
            self._begin(tenant, Piece(Work(updates, here, (), late)), before)

    def _take_up_control(self, late: PutOff, record: ControlRecord, *, at_once: bool) -> None:
        owner = self._partition.owner_of(late.service_object)
        if owner is None or owner == self._partition.number:
            apply = partial(self._apply, record, late, at_once=at_once)
            self._uncomputed.guard(_row(late), apply, (late,))
        else:
            self._uncomputed.guard(_row(late), lambda: self._forward(owner, record, late), (late,))

    def _forward(self, owner: int, record: ControlRecord, late: PutOff) -> None:
        self._intake.forward(owner, record)
        self._uncomputed.store(Work((), self._partition.progress, (), (late,)))

    def _apply(self, record: ControlRecord, late: PutOff, *, at_once: bool) -> None:
        if at_once:
            self._slices.drop(late.tenant)
        elif isinstance(record, DefinitionRecord | BackfillRecord):
            if self._slices.begun(late.tenant) is None:
                self._control.prepare(record)
            if not self._slices.go_on(late, record, CONTESTED_SECONDS):
                return
        change = self._control.change_of(record, late)
        if not at_once and self._control.is_inside(change, late.tenant):
            work = Work((), self._partition.progress, (), (late,))
            self._under_way[late.tenant] = _Late(work, 0, None, True, change)
            return
        self._control.apply_late(change, late)
        self._partition.count_waiting()
        self._partition.emitted_late.append(late.key)

    def _give_up(self, tenant: int, late: PutOff, error: Exception) -> None:
        def fail() -> None:
            raise error

        del self._under_way[tenant]
        self._uncomputed.guard(_row(late), fail, (late,))
        self._partition.count_waiting()


def _row(late: PutOff) -> Row:
    """The record as the log had it."""
    return Row(late.offset, late.record)
