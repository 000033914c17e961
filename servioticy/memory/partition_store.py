"""The PartitionStore in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import orjson

from servioticy.domain.documents import Documents
from servioticy.domain.documents.service_objects import ArgumentNames
from servioticy.domain.documents.stored import parsing
from servioticy.domain.model import LastUpdate, ServiceObject
from servioticy.domain.records import EmittedRecord
from servioticy.domain.timing import becomes_last
from servioticy.errors import Fenced, Unavailable
from servioticy.memory.state import Progress, ServiceObjectRow, State
from servioticy.ports.partition_store import Batch, Charge, PlacedObject, PutOff

PARSED = 16 * 1024 * 1024
"""Bytes of definitions kept parsed."""


class MemoryPartitionStore:
    """What the pipeline keeps: one transaction a batch, with its progress."""

    def __init__(self, state: State, argument_names: ArgumentNames) -> None:
        self._state = state
        self._documents = Documents(parsing(argument_names), PARSED)

    def begin(self, partition: int) -> tuple[int, int]:
        """Claim a partition; (next offset, emitted offset), made at zero if new.

        Raises Unavailable while another store has it.
        """
        self._state.ask_postgres()
        if self._state.claims.setdefault(partition, self) is not self:
            raise Unavailable(f"another worker has partition {partition}")
        progress = self._state.progress.setdefault(partition, Progress())
        return progress.next_offset, progress.emitted_offset

    def end(self, partition: int) -> None:
        """Give up the claim."""
        self._state.ask_postgres()
        if self._state.claims.get(partition) is self:
            del self._state.claims[partition]

    def all_progress(self) -> dict[int, int]:
        """The next offset of every partition that has one."""
        self._state.ask_postgres()
        return {partition: each.next_offset for partition, each in self._state.progress.items()}

    def forwarded(self, partition: int) -> dict[int, int]:
        """From each partition, the offset before which forwarded records were taken."""
        self._state.ask_postgres()
        return {
            origin: offset
            for (to_partition, origin), offset in self._state.forwarded.items()
            if to_partition == partition
        }

    def component(self, service_object: str) -> list[PlacedObject]:
        """The Service Objects computed together with this one; empty: it does not exist."""
        self._state.ask_postgres()
        with self._state.lock:
            asked = self._state.service_objects.get(service_object)
            return [
                PlacedObject(
                    self._service_object(each),
                    each.id,
                    each.tenant,
                    each.owner_partition,
                    each.deleted_at is not None and each.active_version is None,
                )
                for each in self._state.service_objects.values()
                if asked is not None and each.component == asked.component
            ]

    def _service_object(self, row: ServiceObjectRow) -> ServiceObject | None:
        if row.active_version is None:
            return None
        version = row.active_version
        document = self._state.definitions[row.id, version]
        definition = self._documents.understood(row.id, version, document).definition
        names = [each.ref.stream for each in definition.streams]
        streams = {name: self._state.streams[row.id, name] for name in names}
        return ServiceObject(definition, row.tenant, version, row.sequence, streams)

    def owner(self, service_object: str) -> tuple[int, int] | None:
        """Whose the Service Object is, and its owner partition; None: it does not exist."""
        self._state.ask_postgres()
        row = self._state.service_objects.get(service_object)
        return None if row is None else (row.tenant, row.owner_partition)

    def last_updates(self, stream_ids: Iterable[int]) -> dict[int, LastUpdate]:
        """The last updates of those of the streams that have one."""
        self._state.ask_postgres()
        found = {each: self._state.last_updates.get(each) for each in stream_ids}
        return {
            stream: LastUpdate(
                last.timestamp,
                last.document,
                None if last.uses is None else orjson.loads(last.uses),
            )
            for stream, last in found.items()
            if last is not None
        }

    def store(self, batch: Batch) -> None:
        """Store all or nothing. Raises Fenced where progress is not at the first offset."""
        self._state.ask_postgres()
        with self._state.lock:
            progress = self._state.progress.get(batch.partition)
            if progress is None or progress.next_offset != batch.first_offset:
                raise Fenced(
                    f"partition {batch.partition} is no longer at offset {batch.first_offset}: "
                    "another worker has it"
                )
            progress.next_offset = batch.next_offset
            progress.emitted_offset = max(progress.emitted_offset, batch.emitted_offset)
            self._store_updates(batch)
            self._store_effects(batch)
            self._store_put_off(batch)

    def _store_put_off(self, batch: Batch) -> None:
        """Records that are computed later, and those that have been."""
        state, partition = self._state, batch.partition
        for each in batch.put_off:
            state.put_off[partition, each.offset] = each
        for offset in batch.taken_up:
            if (partition, offset) in state.put_off:
                state.taken_up.add((partition, offset))
        for key in [(partition, offset) for offset in batch.emitted_late]:
            if key in state.taken_up:
                state.taken_up.discard(key)
                del state.put_off[key]

    def _store_updates(self, batch: Batch) -> None:
        """The same stream and timestamp again overwrites, in history and as last update."""
        self._state.superseded = [
            (partition, each)
            for partition, each in self._state.superseded
            if partition != batch.partition or each.offset >= batch.emitted_offset
        ]
        for update in batch.updates:
            key = (update.stream_id, update.timestamp)
            displaced = self._state.updates.get(key)
            if displaced is not None and displaced[1].offset >= batch.first_offset:
                self._state.superseded.append(displaced)
            self._state.updates[key] = (batch.partition, update)
        for last in batch.last_updates:
            before = self._state.last_updates.get(last.stream_id)
            if becomes_last(last.timestamp, before and before.timestamp):
                self._state.last_updates[last.stream_id] = last
        for each in batch.verdicts:
            times, _last = self._state.verdicts.get((each.stream_id, each.verdict), (0, b""))
            self._state.verdicts[each.stream_id, each.verdict] = (times + each.times, each.last)

    def _store_effects(self, batch: Batch) -> None:
        """What control and forwarded records of the batch bring about."""
        for origin, offset in batch.forwarded.items():
            self._state.forwarded[batch.partition, origin] = offset
        if batch.activate is not None:
            self._activate(*batch.activate)
        if batch.delete is not None:
            self._delete(batch.delete)
        if batch.erase is not None:
            self._erase(*batch.erase)
        for id_ in batch.release[0] if batch.release is not None else ():
            row = self._state.service_objects.get(id_)
            if batch.release and row and row.owner_partition == batch.partition:
                row.owner_partition = batch.release[1]

    def _activate(self, service_object: str, version: int, change: int) -> None:
        """A version is in force, unless a later change was made already."""
        row = self._state.service_objects.get(service_object)
        if row is None:
            return
        first = row.active_version is None and row.active_change == 0
        if row.active_change < change or first:
            row.active_version, row.active_change = version, change

    def _delete(self, service_object: str) -> None:
        """All that is stored of a Service Object, but for the fact that its id is used up."""
        state = self._state
        row = state.service_objects.get(service_object)
        if row is not None:
            row.active_version, row.active_change = None, 2**63 - 1
        gone = {number for ref, number in state.streams.items() if ref[0] == service_object}
        for number in gone:
            self._forget_updates(number)
        state.verdicts = {key: row for key, row in state.verdicts.items() if key[0] not in gone}
        for stream in gone:
            state.processor_us.pop(stream, None)
        state.edges = [
            each
            for each in state.edges
            if service_object not in (each.reader, each.source.service_object)
        ]
        state.streams = {ref: n for ref, n in state.streams.items() if ref[0] != service_object}
        for key in [each for each in state.definitions if each[0] == service_object]:
            del state.definitions[key]

    def _erase(self, service_object: str, stream: str, change: int) -> None:
        """The stream's updates, unless a later change has erased it already."""
        number = self._state.streams.get((service_object, stream))
        if number is None or 0 < change <= self._state.erased_by.get(number, 0):
            return
        self._state.erased_by[number] = change
        self._forget_updates(number)

    def _forget_updates(self, stream_id: int) -> None:
        self._state.last_updates.pop(stream_id, None)
        for key in [each for each in self._state.updates if each[0] == stream_id]:
            del self._state.updates[key]

    def charge(self, charges: Sequence[Charge]) -> None:
        """Add to what streams have used; those that are gone are left out."""
        self._state.ask_postgres()
        with self._state.lock:
            there = set(self._state.streams.values())
            for each in charges:
                if each.stream_id in there:
                    used = self._state.processor_us.get(each.stream_id, 0)
                    self._state.processor_us[each.stream_id] = used + each.microseconds

    def not_acknowledged(
        self, partition: int, emitted_offset: int, next_offset: int
    ) -> list[EmittedRecord]:
        """What was stored between the two, in the order it was made."""
        self._state.ask_postgres()
        with self._state.lock:
            names = {number: ref for ref, number in self._state.streams.items()}
            rows = [
                row
                for stored_from, row in (*self._state.updates.values(), *self._state.superseded)
                if stored_from == partition
                and row.stream_id in names
                and (
                    emitted_offset <= row.offset < next_offset
                    or (partition, row.offset) in self._state.taken_up
                )
            ]
            return [
                EmittedRecord(
                    *names[row.stream_id],
                    row.tenant,
                    row.version,
                    row.timestamp,
                    msgspec.Raw(row.document),
                )
                for row in sorted(rows, key=lambda each: (each.offset, each.position))
            ]

    def waiting(self, partition: int) -> dict[int, int]:
        """How many records wait that have been put off, by tenant."""
        self._state.ask_postgres()
        with self._state.lock:
            return dict(Counter(each.tenant for each in self._waiting(partition)))

    def put_off(self, partition: int, tenant: int, most: int, most_bytes: int) -> list[PutOff]:
        """The tenant's records that were put off, oldest first; one at least if there is any."""
        self._state.ask_postgres()
        with self._state.lock:
            found: list[PutOff] = []
            for each in self._waiting(partition):
                if each.tenant == tenant and len(found) < most:
                    found.append(each)
                    most_bytes -= len(each.record)
                    if most_bytes <= 0:
                        break
            return found

    def taken_up(self, partition: int) -> list[int]:
        """Offsets of records that are computed late and perhaps not all emitted."""
        self._state.ask_postgres()
        return sorted(offset for number, offset in self._state.taken_up if number == partition)

    def _waiting(self, partition: int) -> list[PutOff]:
        return [
            each
            for key, each in sorted(self._state.put_off.items())
            if key[0] == partition and key not in self._state.taken_up
        ]
