"""From the records of the log to what is computed here: read, admit, forward, dead-letter."""

from __future__ import annotations

import logging
from typing import NamedTuple

import msgspec

from pipeline.journal import Made, Place
from pipeline.partition import Partition
from pipeline.work import Forwarded, Taken
from servioticy.domain.letters import clipped
from servioticy.domain.model import SensorUpdate
from servioticy.domain.records import (
    ControlRecord,
    DeadLetter,
    LogRecord,
    UnreadableRecord,
    UpdateRecord,
    read_record,
)
from servioticy.errors import Rejected
from servioticy.ports.output import Output
from servioticy.ports.partition_store import PutOff

log = logging.getLogger("servioticy.pipeline")


class Row(NamedTuple):
    """A record of the log as Kafka gave it."""

    offset: int
    value: bytes | None


class Intake:
    """Looks at each record of one partition before anything is computed."""

    def __init__(
        self, partition: Partition, output: Output, heals: tuple[type[Exception], ...]
    ) -> None:
        self._partition = partition
        self._output = output
        self._heals = heals
        self.forwarded: list[Forwarded] = []
        """Taken since this was last emptied. Noted with the work that they are part of: cut
        into pieces, each piece may only note its own, or a crash after it would lose others."""

    def guarded(self, row: Row, *, late: bool = False) -> Taken | PutOff | ControlRecord | None:
        """What the row is to this partition. A bug that it meets makes a dead letter of it."""
        try:
            record = self.read(row)
            if isinstance(record, UpdateRecord):
                return self.admit(record, row, late=late)
            return record
        except self._heals:
            raise
        except Exception as error:
            log.exception("record_failed", extra={"offset": row.offset})
            self.bury(row, f"failed: {type(error).__name__}: {error}")
            return None

    def read(self, row: Row) -> LogRecord | None:
        """The record; what cannot be read becomes a dead letter."""
        try:
            return read_record(row.value)
        except UnreadableRecord as error:
            self.bury(row, f"unreadable: {error}")
            return None

    def admit(
        self, record: UpdateRecord, row: Row, *, late: bool = False
    ) -> Taken | PutOff | None:
        """The update, if this is the place to compute it and the first time it comes.

        It is put off where its stream may be declared by a change that has been put off.
        One that comes `late`, having been put off, was looked at for repeats before.
        """
        partition = self._partition
        if record.forwarded is not None and not late:
            source, offset = record.forwarded
            if offset < partition.taken.get(source, 0):
                return None
            partition.taken[source] = offset + 1
            self.forwarded.append(Forwarded(row.offset, source, offset + 1))
        owner = partition.service_object(record.service_object)
        if isinstance(owner, int):
            # What was put off is behind others that were forwarded meanwhile, and would be
            # taken for a repeat; coming twice it overwrites itself.
            forwarded = None if late else (partition.number, row.offset)
            try:
                self.forward(owner, msgspec.structs.replace(record, forwarded=forwarded))
            except Rejected as error:
                self.bury(row, f"not forwarded: {error}")
            return None
        if owner is None or record.stream not in owner.stream_ids:
            tenant = partition.tenant_of(record.service_object) if partition.waiting else None
            if tenant is not None and tenant in partition.waiting and not late:
                return PutOff(row.offset, tenant, record.service_object, row.value or b"")
            gone = owner is None and partition.is_deleted(record.service_object)
            self.bury(row, f"{'deleted' if gone else 'unknown'} stream {record.origin}")
            return None
        update = SensorUpdate(record.origin, record.timestamp, bytes(record.update))
        own = PutOff(row.offset, owner.tenant, record.service_object, row.value or b"")
        return Taken(Made(Place(row.offset), update), own)

    def forward(self, partition: int, record: LogRecord) -> None:
        """Append it to another partition; it is there when this returns."""
        self._output.send_to_log(partition, record)
        self._output.flush()

    def bury(self, row: Row, reason: str) -> None:
        """Make a dead letter of the record; it is safe when this returns."""
        reason = clipped(reason)
        number = self._partition.number
        facts = {"partition": number, "offset": row.offset, "reason": reason}
        try:
            self._output.bury(DeadLetter(number, row.offset, reason, row.value or b""))
            self._output.flush()
        except self._heals:
            raise
        except Exception:
            # It stands in the log, and this event names its place.
            log.exception("dead_letter_failed", extra=facts)
        else:
            log.warning("dead_letter", extra=facts)

    def tenant_changing(self, record: ControlRecord) -> int | None:
        """Whose change of one Service Object the record is; None for moves, which are nobody's."""
        service_object = getattr(record, "service_object", None)
        return None if service_object is None else self._partition.tenant_of(service_object)
