"""From the records of the log to what is computed here: read, admit, forward, dead-letter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from pipeline.batching.dead_letters import DeadLetters
from pipeline.state.components import StillLoading
from pipeline.state.partition import Partition
from pipeline.work import Forwarded, LoggedUpdate, Row
from servioticy.domain.records import (
    ControlRecord,
    LogRecord,
    UnreadableRecord,
    UpdateRecord,
    read_record,
)
from servioticy.errors import Rejected
from servioticy.ports.output import Output
from servioticy.ports.partition_store import PutOff

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

    def read(self, row: Row) -> LogRecord | None:
        """The record of a row; None where there is none that can be read: a dead letter."""
        try:
            return self._read(row)
        except self._passes:
            raise
        except Exception as error:  # noqa: BLE001  the log has it
            self._dead_letters.add_failed(row, error)
            return None

    def prepare(self, records: Iterable[LogRecord | None]) -> None:
        """Load the components of these updates together, as far as there is time."""
        self._partition.prepare(
            [each.service_object for each in records if isinstance(each, UpdateRecord)]
        )

    def admit(
        self, row: Row, record: LogRecord | None, *, late: bool = False, at_once: bool = False
    ) -> Admitted | None:
        """What the record of a row is to this partition; None where nothing is computed here.

        A row that comes `late` had been put off: it was looked at for repeats before. An
        update waits while the component of its Service Object is loaded, unless it is to be
        computed `at_once`. A bug that the row meets makes a dead letter of it.
        """
        if not isinstance(record, UpdateRecord):
            return record
        try:
            return self._admit_update(record, row, late=late, at_once=at_once)
        except self._passes:
            raise
        except Exception as error:  # noqa: BLE001  the log has it
            self._dead_letters.add_failed(row, error)
            return None

    def pop_forwarded(self) -> list[Forwarded]:
        """The forwarded records that have come since this was last asked.

        They are noted with the work that they are part of: where it is cut, each piece notes
        its own only, or a crash after it would lose others.
        """
        forwarded, self._forwarded = self._forwarded, []
        return forwarded

    def forward(self, partition: int, record: LogRecord) -> None:
        """Append the record to another partition; it is there when this returns."""
        self._output.send_to_log(partition, record)
        self._output.flush()

    def tenant_changing(self, record: ControlRecord) -> int | None:
        """Whose change of one Service Object the record is; None for moves, which are nobody's."""
        service_object = getattr(record, "service_object", None)
        return None if service_object is None else self._partition.tenant_of(service_object)

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
            record.origin,
            record.timestamp,
            bytes(record.update),
            row.value or b"",
        )

    def _has_come(self, forwarded: tuple[int, int], row: Row) -> bool:
        """Whether a forwarded record has come before; notes that it has come now."""
        source, offset = forwarded
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
        partition = self._partition
        tenant = partition.tenant_of(record.service_object) if partition.waiting else None
        if tenant is not None and tenant in partition.waiting and not late:
            return PutOff(row.offset, tenant, record.service_object, row.value or b"")
        gone = not exists and partition.is_deleted(record.service_object)
        self._dead_letters.add(row, f"{'deleted' if gone else 'unknown'} stream {record.origin}")
        return None
