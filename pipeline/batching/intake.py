"""From the records of the log to what is computed here: read, admit, forward, dead-letter.

What comes over borders: `crossed.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from pipeline.batching.crossed import Crossed
from pipeline.batching.dead_letters import DeadLetters
from pipeline.state.components import StillLoading
from pipeline.state.partition import Partition
from pipeline.work import Forwarded, LoggedUpdate, Marked, Root, Row
from servioticy.domain.model import ClockRef, ServiceObject
from servioticy.domain.program_code import PROGRAMS
from servioticy.domain.records import (
    AcquireRecord,
    AnswerRecord,
    BeginRecord,
    BorderRecord,
    ControlRecord,
    EndRecord,
    LogRecord,
    OwnRecord,
    ReadingRecord,
    ReleaseRecord,
    TickRecord,
    UnreadableRecord,
    UpdateRecord,
    read_record,
    write,
)
from servioticy.errors import Rejected
from servioticy.ports.output import Output
from servioticy.ports.put_off import PutOff

Admitted: TypeAlias = LoggedUpdate | PutOff | ControlRecord
"""What a record is to its partition: an update to compute, a record to compute later, or a
change of what the log means."""


class Intake:
    """Looks at each record of one partition before anything is computed."""

    def __init__(
        self,
        partition: Partition,
        output: Output,
        dead_letters: DeadLetters,
        passes: tuple[type[Exception], ...],
    ) -> None:
        """`passes` are the errors that no record is to blame for."""
        self._partition = partition
        self._output = output
        self._dead_letters = dead_letters
        self._passes = passes
        self._forwarded: list[Forwarded] = []
        self._crossed = Crossed(partition, self._forward_crossed)

    def read(self, row: Row) -> LogRecord | None:
        """The record of a row; None where there is none that can be read: a dead letter."""
        try:
            return self._read(row)
        except self._passes:
            raise
        except Exception as error:  # noqa: BLE001  the log has it
            self._dead_letters.add_failed(row, error)
            return None

    @staticmethod
    def glance(row: Row) -> OwnRecord | None:
        """What a row that is not to be taken yet has of one tenant; None where it is another's."""
        try:
            record = read_record(row.value)
        except UnreadableRecord:
            return None
        return record if isinstance(record, OwnRecord) else None

    def prepare(self, records: Sequence[LogRecord | None]) -> int:
        """Load the components of these updates together, as far as there is time.

        Returns how many of them, from the first on, need not wait for small ones that are left.
        """
        self._crossed.look_up(records)
        wanted = [each.service_object for each in records if isinstance(each, OwnRecord)]
        left = self._partition.prepare([*wanted, *self._crossed.readers(records)])
        waits = (isinstance(each, OwnRecord) and each.service_object in left for each in records)
        return next((number for number, each in enumerate(waits) if each), len(records))

    def admit(
        self, row: Row, record: LogRecord | None, *, at_once: bool = False
    ) -> Sequence[Admitted]:
        """What the record of a row is to this partition: nothing, or several trees.

        An update waits while the component of its Service Object is loaded, unless it is to be
        computed `at_once`. A bug that the row meets makes a dead letter of it.
        """
        found: Sequence[Admitted | None]
        try:
            match record:
                case UpdateRecord():
                    found = [self._admit_update(record, row, late=False, at_once=at_once)]
                case TickRecord():
                    found = [self._admit_tick(record, row, late=False, at_once=at_once)]
                case AnswerRecord():
                    found = self._admit_answer(record, row, at_once=at_once)
                case BorderRecord():
                    if self._is_repeat(record, row):
                        return ()
                    found = self._crossed.admit(record, row, at_once=at_once)
                case _:
                    found = [record]
        except self._passes:
            raise
        except Exception as error:  # noqa: BLE001  the log has it
            self._dead_letters.add_failed(row, error)
            return ()
        return [each for each in found if each is not None]

    def admit_late(
        self, late: PutOff, record: LogRecord | None, *, at_once: bool = False
    ) -> Admitted | None:
        """What a record that had been put off is now: it was looked at for repeats before."""
        row = Row(late.offset, late.record)
        try:
            if isinstance(record, UpdateRecord):
                return self._admit_update(record, row, late=True, at_once=at_once)
            if isinstance(record, TickRecord):
                return self._admit_tick(record, row, late=True, at_once=at_once)
            if isinstance(record, AnswerRecord):
                return self._admit_answered(record, row, late.tree, late=True, at_once=at_once)
            if isinstance(record, BorderRecord):
                return self._crossed.admit_late(record, late, at_once=at_once)
        except self._passes:
            raise
        except Exception as error:  # noqa: BLE001  the log has it
            self._dead_letters.add_failed(row, error)
            return None
        return record

    def is_repeat(self, record: ControlRecord, row: Row) -> bool:
        """Whether a control record that another partition has sent on has come before.

        Notes that it has come now: all that came before it is stored.
        """
        return isinstance(record, BeginRecord | EndRecord) and self._is_repeat(record, row)

    def pop_forwarded(self, before: int) -> list[Forwarded]:
        """The forwarded records that have come since this was last asked, before this offset.

        They are noted with the work that they are part of: where it is cut, each piece notes
        its own only, or a crash after it would lose others. So it is with the trees of a record.
        """
        forwarded = [each for each in self._forwarded if each.offset < before]
        self._forwarded = [each for each in self._forwarded if each.offset >= before]
        return forwarded

    def pop_marked(self, before: int) -> list[Marked]:
        """The same of what came over borders."""
        return self._crossed.pop_marked(before)

    def forward(self, partition: int, *records: LogRecord) -> None:
        """Append these to a partition; they are there when this returns: one wait for all."""
        for each in records:
            self._output.send_to_log(partition, each)
        if records:
            self._output.flush()

    def _forward_crossed(self, partition: int, record: BorderRecord) -> None:
        """Append it to another partition; whom it cannot reach costs those here nothing."""
        try:
            self.forward(partition, record)
        except Rejected as error:
            _here, offset = record.forwarded or (0, 0)
            reason = f"not sent on to {len(record.readers)} readers: {error}"
            self._dead_letters.add(Row(offset, None), reason)

    def tenant_changing(self, record: ControlRecord) -> int | None:
        """Whose change of one Service Object the record is; None for moves, which are nobody's."""
        match record:
            case ReadingRecord():
                return record.provider
            case BeginRecord():
                return record.tenant
            case EndRecord():
                # What is sent on to where the readers have moved is not theirs here any more.
                here = record.moved_to in (None, self._partition.number)
                return record.tenant if here else None
            case ReleaseRecord() | AcquireRecord():
                return None
        return self._partition.tenant_of(record.service_object)

    def _read(self, row: Row) -> LogRecord | None:
        try:
            return read_record(row.value)
        except UnreadableRecord as error:
            self._dead_letters.add(row, f"unreadable: {error}")
            return None

    def _admit_update(
        self, record: UpdateRecord, row: Row, *, late: bool, at_once: bool
    ) -> LoggedUpdate | PutOff | None:
        """The update, if this is the place to compute it and the first time it comes."""
        if record.forwarded is not None and not late and self._has_come(record.forwarded, row):
            return None
        owner = self._partition.service_object(record.service_object, at_once=at_once)
        if isinstance(owner, StillLoading):
            return PutOff(row.offset, owner.tenant, record.service_object, row.value or b"")
        if isinstance(owner, int):
            self._forward_update(owner, record, row, late=late)
            return None
        if owner is None or record.stream not in owner.stream_ids:
            return self._refuse(record, row, late=late, exists=owner is not None)
        return LoggedUpdate(
            row.offset,
            owner.tenant,
            [Root(record.origin, record.timestamp, bytes(record.update))],
            row.value or b"",
            at=record.at,
            trace=record.trace,
        )

    def _admit_tick(
        self, record: TickRecord, row: Row, *, late: bool, at_once: bool
    ) -> LoggedUpdate | PutOff | None:
        """The times, each as a root; nothing where the stream has gone, or sets no times now.

        Where it has moved whoever computes it there has them come once more.
        """
        owner = self._partition.service_object(record.service_object, at_once=at_once)
        if isinstance(owner, StillLoading):
            return PutOff(row.offset, owner.tenant, record.service_object, row.value or b"")
        clock = ClockRef(*record.origin)
        if (
            not isinstance(owner, ServiceObject)
            or not self._partition.graph.knows(clock)
            or self._takes_answers(owner, clock)
        ):
            return None if late else self._behind_its_change(record.service_object, row)
        roots = [
            Root(clock, record.timestamp, key, (number,)) for number, key in enumerate(record.keys)
        ]
        value = row.value or b""
        at = record.timestamp
        return LoggedUpdate(row.offset, owner.tenant, roots, value, is_tick=True, at=at)

    def _admit_answer(
        self, record: AnswerRecord, row: Row, *, at_once: bool
    ) -> list[LoggedUpdate | PutOff | None]:
        """A tree for each of its events, in order; without those that are stored already.

        Each as a record of its own: what is put off is that alone.
        """
        offset, stored = self._partition.progress
        return [
            self._admit_answered(
                each, Row(row.offset, write(each)), tree, late=False, at_once=at_once
            )
            for tree, each in enumerate(record.singly(), 1)
            if row.offset != offset or tree >= stored
        ]

    def _admit_answered(
        self, record: AnswerRecord, row: Row, tree: int, *, late: bool, at_once: bool
    ) -> LoggedUpdate | PutOff | None:
        """The answer to one update; nothing where the stream has gone, or nobody is asked now.

        Where it has moved it is asked again.
        """
        owner = self._partition.service_object(record.service_object, at_once=at_once)
        value = row.value or b""
        if isinstance(owner, StillLoading):
            return PutOff(row.offset, owner.tenant, record.service_object, value, tree)
        clock = ClockRef(*record.origin)
        if not isinstance(owner, ServiceObject) or not self._takes_answers(owner, clock):
            if late or (later := self._behind_its_change(record.service_object, row)) is None:
                return None
            return later._replace(tree=tree)
        (event,) = record.events
        root = Root(clock, event.timestamp, value, (-tree,))
        at = record.timestamp
        trace = record.traces[0] if record.traces else ""
        return LoggedUpdate(
            row.offset, owner.tenant, [root], value, tree, is_tick=True, at=at, trace=trace
        )

    def _takes_answers(self, owner: ServiceObject, clock: ClockRef) -> bool:
        """Whether the stream that the clock is of is computed by a program."""
        stream = owner.definition.stream(clock.stream)
        composite = None if stream is None else stream.composite
        by_program = composite is not None and composite.evaluator == PROGRAMS
        return by_program and self._partition.graph.knows(clock)

    def _behind_its_change(self, service_object: str, row: Row) -> PutOff | None:
        """A record that means nothing now, where what makes it mean something may have been put
        off."""
        partition = self._partition
        tenant = partition.tenant_of(service_object) if partition.waiting else None
        if tenant is None or tenant not in partition.waiting:
            return None
        return PutOff(row.offset, tenant, service_object, row.value or b"")

    def _is_repeat(self, record: BorderRecord | BeginRecord | EndRecord, row: Row) -> bool:
        return record.forwarded is not None and self._has_come(record.forwarded, row)

    def _has_come(self, forwarded: tuple[int, int], row: Row) -> bool:
        """Whether a forwarded record has come before; notes that it has come now."""
        source, offset = forwarded
        if offset < 0:  # of a log that is gone: once it comes, and is no place in this one
            return False
        offsets = self._partition.forwarded_offsets
        if offset < offsets.get(source, 0):
            return True
        offsets[source] = offset + 1
        self._forwarded.append(Forwarded(row.offset, source, offset + 1))
        return False

    def _forward_update(self, owner: int, record: UpdateRecord, row: Row, *, late: bool) -> None:
        # What was put off is behind others that were forwarded meanwhile, and would be
        # taken for a repeat; coming twice it overwrites itself.
        forwarded = None if late else (self._partition.number, row.offset)
        try:
            self.forward(owner, msgspec.structs.replace(record, forwarded=forwarded))
        except Rejected as error:
            self._dead_letters.add(row, f"not forwarded: {error}")

    def _refuse(
        self, record: UpdateRecord, row: Row, *, late: bool, exists: bool
    ) -> PutOff | None:
        """Make a dead letter of an update whose stream, or Service Object, is not there.

        It is put off instead where the change that declares the stream may have been put off.
        """
        if not late and (later := self._behind_its_change(record.service_object, row)):
            return later
        gone = not exists and self._partition.is_deleted(record.service_object)
        self._dead_letters.add(row, f"{'deleted' if gone else 'unknown'} stream {record.origin}")
        return None
