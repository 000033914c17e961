"""The PartitionStore in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

import msgspec

from memory import borders
from memory.effects import take_effect
from memory.expiry import expire
from memory.purge import purge
from memory.state import ProgressRow, ServiceObjectRow, State
from servioticy.domain.documents import Documents
from servioticy.domain.documents.service_objects import ArgumentNames
from servioticy.domain.documents.stored import reading
from servioticy.domain.model import (
    Grant,
    InputFromOutside,
    LastUpdate,
    ServiceObject,
    StreamRef,
)
from servioticy.domain.pauses import Paused
from servioticy.domain.quotas import COMPUTATIONS, PROCESSOR_SECONDS, STORED_BYTES
from servioticy.domain.records import EmittedRecord
from servioticy.errors import Fenced, Unavailable
from servioticy.ports.accounts import Use
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.borders import Channel, Crossing, OutsideReader
from servioticy.ports.effects import Activate, EndInputs, Erase
from servioticy.ports.expiry import Expired
from servioticy.ports.kept_entries import DueEntry, EntryToAsk, KeptValue
from servioticy.ports.partition_store import (
    ANY_SIZE,
    UNDERSTOOD_AT_ONCE,
    ComponentMember,
    Progress,
)
from servioticy.ports.past import (
    MAX_BYTES,
    MAX_TOGETHER,
    StoredPast,
    ToldPast,
    WantedPast,
)
from servioticy.ports.put_off import PutOff, TreeKey

PARSED = 16 * 1024 * 1024
"""Bytes of definitions kept parsed."""


_CLAIMS = count(1)


class MemoryPartitionStore:
    """What the pipeline keeps: one transaction a batch, with its progress."""

    def __init__(self, state: State, argument_names: ArgumentNames) -> None:
        self._state = state
        self._claim = next(_CLAIMS)
        self._documents = Documents(reading(argument_names), PARSED, keeps_copies=False)

    def begin(self, partition: int) -> Progress:
        """Claim a partition; its progress, made at zero if new.

        Raises Unavailable while another store has it.
        """
        self._state.ask_postgres()
        if self._state.claims.setdefault(partition, self) is not self:
            raise Unavailable(f"another worker has partition {partition}")
        row = self._state.progress.setdefault(partition, ProgressRow())
        with self._state.lock:
            borders.forget_unread_marks(self._state, partition)
        return Progress(row.next_offset, row.next_tree, row.emitted_offset)

    def claim(self, partition: int) -> int:
        """Return the claim that this store has. Raises Fenced where it has none."""
        self._state.ask_postgres()
        if self._state.claims.get(partition) is not self:
            raise Fenced(f"partition {partition} is not claimed here")
        return self._claim

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

    def component(self, service_object: str) -> list[ComponentMember]:
        """The Service Objects computed together with this one; empty: it does not exist."""
        self._state.ask_postgres()
        with self._state.lock:
            asked = self._state.service_objects.get(service_object)
            return [
                ComponentMember(
                    each.id,
                    each.tenant,
                    each.owner_partition,
                    each.active_version,
                    each.deleted_at is not None and each.active_version is None,
                    len(self._state.definitions.get((each.id, each.active_version or 0), b"")),
                )
                for each in self._state.service_objects.values()
                if asked is not None and each.component == asked.component
            ]

    def components(self, ids: Sequence[str]) -> list[list[ComponentMember]]:
        """Return the components that these Service Objects are of, each once."""
        found = [self.component(each) for each in ids]
        return list({members[0].id: members for members in found if members}.values())

    def forget_parsed(self, seconds: float) -> int:
        """Forget what definitions mean that were not read for so long; return how many."""
        return self._documents.forget_unused(seconds)

    def service_objects(self, ids: Sequence[str]) -> Iterator[ServiceObject]:
        """Those of them of which a version is in force; each is read when it is asked for."""
        self._state.ask_postgres()
        with self._state.lock:
            objects = self._state.service_objects
            rows = [objects[id_] for id_ in ids if id_ in objects]
        for each in sorted(rows, key=lambda each: each.sequence):
            found = self._service_object(each)
            if found is not None:
                yield found

    def _service_object(self, row: ServiceObjectRow) -> ServiceObject | None:
        if row.active_version is None:
            return None
        version = row.active_version
        document = self._state.definitions[row.id, version]
        definition = self._documents.understood(row.id, version, document).definition
        names = [each.ref.stream for each in definition.streams]
        state = self._state
        streams = {name: state.stored_as(state.streams[row.id, name]) for name in names}
        grants = tuple(
            each.grant
            for each in state.grants.values()
            if each.service_object == row.id and each.active
        )
        inputs = {
            ref: InputFromOutside(each.provider, each.is_open)
            for (reader, ref), each in state.inputs_from_outside.items()
            if reader == row.id
        }
        read_in: dict[str, set[int]] = {}
        for each in self.outside_readers(row.id):
            if each.is_open:
                read_in.setdefault(each.source.stream, set()).add(each.partition)
        return ServiceObject(
            definition,
            row.tenant,
            version,
            row.sequence,
            streams,
            grants,
            inputs,
            {name: tuple(sorted(partitions)) for name, partitions in read_in.items()},
            state.operator_owners.get((row.id, version), {}),
        )

    def changed(
        self, changes: Sequence[Activate], most_bytes: int = ANY_SIZE
    ) -> Mapping[str, ServiceObject]:
        """Return the Service Objects as these make them, by their ids; of many the first."""
        self._state.ask_postgres()
        made: dict[str, ServiceObject] = {}
        room = most_bytes
        with self._state.lock:
            for each in changes:
                row = self._state.service_objects.get(each.service_object)
                document = self._state.definitions.get((each.service_object, each.version))
                if row is None or document is None or row.active_change >= each.change:
                    continue
                room -= len(document)
                if room < 0:
                    break
                found = self._service_object(replace(row, active_version=each.version))
                if found is not None:
                    made[row.id] = replace(found, stream_ids={}, inputs={}, read_in={})
        return made

    def understanding(self, change: Activate) -> Paused[object] | None:
        """Return the work to understand what this makes, before it is asked for; if it is much."""
        self._state.ask_postgres()
        row = self._state.service_objects.get(change.service_object)
        document = self._state.definitions.get((change.service_object, change.version), b"")
        is_known = self._documents.known(change.service_object, change.version) is not None
        is_made = row is None or row.active_change >= change.change
        if is_known or is_made or len(document) <= UNDERSTOOD_AT_ONCE:
            return None
        return self._documents.understanding(change.service_object, change.version, document)

    def swapped(self, job: str, *, at_once: bool) -> Paused[None]:
        """Return the work to have a backfill take its place: of slices nothing is seen here.

        What stands in the way is Postgres' alone to find: nobody else has jobs.
        """
        self._state.ask_postgres()
        if not at_once:
            yield
        with self._state.lock:
            backfill = self._state.backfills.pop(job, None)
            if backfill is not None:
                backfill.take_its_place(self._state.updates, self._state.taken_back)

    def grant(self, grant: str) -> Grant | None:
        """Return a grant, whether it is in force yet or not; None where it is gone."""
        self._state.ask_postgres()
        found = self._state.grants.get(grant)
        return None if found is None else found.grant

    def owner(self, service_object: str) -> tuple[int, int] | None:
        """Whose the Service Object is, and its owner partition; None: it does not exist."""
        self._state.ask_postgres()
        row = self._state.service_objects.get(service_object)
        return None if row is None else (row.tenant, row.owner_partition)

    def owners(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Return the same of many: whose each is that exists, and its owner partition."""
        found = {each: self.owner(each) for each in ids}
        return {id_: owner for id_, owner in found.items() if owner is not None}

    def erases(self, change: Erase) -> bool:
        """Whether this is a later erasure than the stream's last one."""
        number = self._state.streams.get((change.service_object, change.stream))
        if number is None:
            return False
        return not change.change or change.change > self._state.erased_by.get(number, 0)

    def closes(self, change: EndInputs) -> Mapping[str, Sequence[StreamRef]]:
        """Return of each reader what it may read until this, which ends it."""
        self._state.ask_postgres()
        with self._state.lock:
            return borders.closes(self._state, change)

    def channels(self, partition: int, streams: Iterable[StreamRef]) -> dict[StreamRef, Channel]:
        """Return who is fed in the partition with these streams of other tenants, and how far."""
        self._state.ask_postgres()
        with self._state.lock:
            return borders.channels(self._state, partition, streams)

    def begun_behind(
        self, readers: Sequence[str], streams: Sequence[StreamRef], place: tuple[int, int]
    ) -> set[tuple[str, StreamRef]]:
        """Which of these readers have begun with which of these streams behind a place."""
        self._state.ask_postgres()
        with self._state.lock:
            return borders.begun_behind(self._state, readers, streams, place)

    def awaiting(self, partition: int) -> dict[int, int]:
        """Which tenants await here what another partition sends on, and how much is held."""
        self._state.ask_postgres()
        with self._state.lock:
            return borders.awaiting(self._state, partition)

    def last_inputs(
        self, wanted: Iterable[tuple[str, StreamRef]]
    ) -> dict[tuple[str, StreamRef], LastUpdate]:
        """Return what these readers know as the last updates of these streams, if anything."""
        self._state.ask_postgres()
        with self._state.lock:
            rows = {key: self._state.inputs_from_outside.get(key) for key in wanted}
            return {key: row.last for key, row in rows.items() if row and row.last}

    def outside_readers(self, service_object: str) -> list[OutsideReader]:
        """Return who of other tenants reads its streams, in order of creation."""
        return self._read(lambda each: each.source.service_object == service_object)

    def reading(self, reader: str, provider: int, partition: int) -> list[OutsideReader]:
        """Return what a Service Object reads of a provider's that is computed in a partition."""

        def is_asked_for(each: OutsideReader) -> bool:
            source = self._state.service_objects[each.source.service_object]
            here = (source.tenant, source.owner_partition) == (provider, partition)
            return here and each.reader == reader

        return self._read(is_asked_for)

    def _read(self, wanted: Callable[[OutsideReader], bool]) -> list[OutsideReader]:
        self._state.ask_postgres()
        with self._state.lock:
            objects = self._state.service_objects
            found = [each for each in self._state.outside_readers.values() if wanted(each)]
            return sorted(found, key=lambda each: (objects[each.reader].sequence, each.source))

    def crossings(self, partition: int) -> list[Crossing]:
        """Return what is not certain to be where it was sent, in the order it was made."""
        self._state.ask_postgres()
        with self._state.lock:
            found = sorted(self._state.crossings.items())
            return [each for key, each in found if key[0] == partition]

    def last_updates(self, stream_ids: Iterable[int]) -> dict[int, LastUpdate]:
        """The last updates of those of the streams that have one, with the streams' states."""
        self._state.ask_postgres()
        last, states = self._state.computed_from, self._state.states
        return {
            each: LastUpdate(last[each].timestamp, last[each].document, states.get(each))
            for each in stream_ids
            if each in last
        }

    def kept(self, wanted: Iterable[tuple[int, bytes]]) -> dict[tuple[int, bytes], KeptValue]:
        """What streams keep under these keys, by stream id and key."""
        self._state.ask_postgres()
        with self._state.lock:
            entries = self._state.kept_entries
            return {key: entries[key] for key in wanted if key in entries}

    def past(self, wanted: Sequence[WantedPast], room: int = MAX_TOGETHER) -> ToldPast:
        """Of each of these what is stored of it; None where that is too much."""
        self._state.ask_postgres()
        answers: list[Sequence[StoredPast] | None] = [None for _ in wanted]
        with self._state.lock:
            for n in sorted(range(len(wanted)), key=lambda n: not wanted[n].is_single):
                found = self._past(wanted[n])
                if len(found) > wanted[n].most:
                    continue
                size = sum(len(each.document) for each in found)
                most = room if wanted[n].is_single else min(room, MAX_BYTES)
                if size > most == room:
                    return ToldPast(answers, is_all=False)
                answers[n] = found if size <= most else None
                room -= min(size, most)
        return ToldPast(answers)

    def _past(self, wanted: WantedPast) -> list[StoredPast]:
        rows = [
            row
            for (stream, at), (_partition, row) in self._state.updates.items()
            if stream in wanted.streams and wanted.begin <= at <= wanted.until
        ]
        rows.sort(key=lambda row: (row.timestamp, row.offset, row.position))
        if wanted.is_newest:
            rows = list({row.stream_id: row for row in rows}.values())
        return [StoredPast(row.stream_id, row.timestamp, row.document) for row in rows]

    def due(self, partition: int, now: int, most: int) -> Sequence[DueEntry]:
        """What is due, the oldest first; at most so many of each tenant."""
        found: dict[int, list[DueEntry]] = {}
        for at, tenant, _stream, key, ref in sorted(self._times(partition)):
            theirs = found.setdefault(tenant, [])
            if 0 <= at <= now and len(theirs) < most:
                theirs.append(DueEntry(*ref, key, at))
        return sorted(
            (each for theirs in found.values() for each in theirs),
            key=lambda each: (each.due, each.service_object, each.stream, each.key),
        )

    def to_ask(self, partition: int, most: int) -> Sequence[EntryToAsk]:
        """For what somebody is to be asked, what has waited longest first; so many of each."""
        found: list[tuple[int, EntryToAsk]] = []
        counts: dict[int, int] = {}
        for at, tenant, stream, key, ref in sorted(self._times(partition)):
            counts[tenant] = counts.get(tenant, 0) + (at < 0)
            if at < 0 and counts[tenant] <= most:
                value = self._state.kept_entries[stream, key].value
                found.append((at, EntryToAsk(tenant, *ref, stream, key, value)))
        found.sort(key=lambda each: (each[0], *each[1][1:3], each[1].key))
        return [each for _at, each in found]

    def next_due(self, partition: int, after: int) -> int | None:
        """When the next entry is due behind this time."""
        return min((at for at, *_ in self._times(partition) if at > after), default=None)

    def _times(self, partition: int) -> list[tuple[int, int, int, bytes, StreamRef]]:
        self._state.ask_postgres()
        with self._state.lock:
            names = {self._state.stored_as(n): ref for ref, n in self._state.streams.items()}
            found = []
            for (stream, key), entry in self._state.kept_entries.items():
                ref = names.get(stream)
                row = ref and self._state.service_objects.get(ref[0])
                if ref is None or not row or entry.due is None or row.active_version is None:
                    continue
                if row.owner_partition == partition:
                    found.append((entry.due, row.tenant, stream, key, StreamRef(*ref)))
            return found

    def store(self, batch: Batch) -> Mapping[int, int]:
        """Store all or nothing. Raises Fenced where progress is not where the batch begins."""
        self._state.ask_postgres()
        with self._state.lock:
            if batch.claim is None:
                self._move_progress(batch)
            elif batch.claim != self._claim or self._state.claims.get(batch.partition) is not self:
                raise Fenced(f"partition {batch.partition} is no longer claimed so")
            replaced = self._store_updates(batch)
            self._store_effects(batch)
            self._store_put_off(batch)
            borders.store(self._state, batch)
            return replaced

    def _move_progress(self, batch: Batch) -> None:
        progress = self._state.progress.get(batch.partition)
        first = batch.first_offset, batch.first_tree
        if progress is None or (progress.next_offset, progress.next_tree) != first:
            raise Fenced(
                f"partition {batch.partition} is no longer at offset {batch.first_offset}: "
                "another worker has it"
            )
        progress.next_offset, progress.next_tree = batch.next_offset, batch.next_tree
        progress.emitted_offset = max(progress.emitted_offset, batch.emitted_offset)

    def _store_put_off(self, batch: Batch) -> None:
        """Records that are computed later, and those that have been."""
        state, partition = self._state, batch.partition
        for each in batch.put_off:
            key = partition, each.key
            known = state.put_off.setdefault(key, each)
            if each.held and key not in state.taken_up:
                state.put_off[key] = known._replace(held=True)
        for taken in batch.taken_up:
            if (partition, taken) in state.put_off:
                state.taken_up.add((partition, taken))
        for key in [(partition, emitted) for emitted in batch.emitted_late]:
            if key in state.taken_up:
                state.taken_up.discard(key)
                del state.put_off[key]

    def _store_updates(self, batch: Batch) -> Mapping[int, int]:
        """The same stream and timestamp again overwrites: of how many bytes, by stream.

        What was taken back and is kept takes bytes, too.
        """
        replaced: Counter[int] = Counter()
        kept = {each: len(row.document) for each, row in self._state.taken_back.items()}
        self._state.superseded = [
            (partition, each)
            for partition, each in self._state.superseded
            if partition != batch.partition
            or each.offset >= batch.emitted_offset
            or (partition, _key(each)) in self._state.put_off
        ]
        own = set()
        gone: dict[tuple[int, int], StoredUpdate] = {}
        for update in batch.updates:
            key = (update.stream_id, update.timestamp)
            displaced = self._state.updates.get(key)
            if displaced is not None:
                replaced[update.stream_id] += len(displaced[1].document)
            if displaced is not None and key in own:
                self._state.superseded.append(displaced)
            own.add(key)
            gone.pop(key, None)
            if update.takes_back:
                self._state.updates.pop(key, None)
                if update.is_sent:
                    self._state.superseded.append((batch.partition, update))
                gone[key] = update
            else:
                self._state.updates[key] = (batch.partition, update)
        for key in own - gone.keys():
            self._end_taken_back(self._state.updates[key][1])
        self._keep_taken_back(gone.values())
        replaced.update(kept)
        replaced.subtract(
            {each: len(row.document) for each, row in self._state.taken_back.items()}
        )
        for state in batch.states:
            self._state.states[state.stream_id] = state.state
        for kept in batch.kept:
            if kept.value is None:
                self._state.kept_entries.pop((kept.stream_id, kept.key), None)
            else:
                self._state.kept_entries[kept.stream_id, kept.key] = KeptValue(
                    kept.value, kept.due
                )
        for each in batch.verdicts:
            times, _last = self._state.verdicts.get((each.stream_id, each.verdict), (0, b""))
            self._state.verdicts[each.stream_id, each.verdict] = (times + each.times, each.last)
        return replaced

    def _end_taken_back(self, row: StoredUpdate) -> None:
        """Where a result as new is there, it is kept no longer."""
        before = self._state.taken_back.get(row.stream_id)
        if row.ends_taken_back and before is not None and before.timestamp <= row.timestamp:
            del self._state.taken_back[row.stream_id]

    def _keep_taken_back(self, gone: Iterable[StoredUpdate]) -> None:
        """From the newest of each stream is computed, as long as nothing newer is there."""
        for each in gone:
            last = self._state.computed_from.get(each.stream_id)
            if last is None or last.timestamp <= each.timestamp:
                self._state.taken_back[each.stream_id] = each

    def _store_effects(self, batch: Batch) -> None:
        """What control and forwarded records of the batch bring about."""
        for origin, offset in batch.forwarded.items():
            self._state.forwarded[batch.partition, origin] = offset
        if batch.effect is not None:
            take_effect(self._state, batch.effect, batch.partition)

    def purge(self, partition: int, most: int, most_bytes: int) -> int | None:
        """Remove a piece of what was deleted or erased; whose it was. None: nothing is left."""
        self._state.ask_postgres()
        with self._state.lock:
            return purge(self._state, partition, most, most_bytes)

    def keep_for(self, seconds: int | None) -> None:
        """Keep updates for so long of streams that say nothing themselves; None: for ever."""
        self._state.retention = seconds

    def forgetful(self, partition: int, after: int, most: int) -> list[int]:
        """Return the next tenants; of those of whom nothing may expire none is left out."""
        self._state.ask_postgres()
        count = max(1, len(self._state.progress))
        later = sorted(each for each in self._state.tenants.values() if each > after)
        return [each for each in later if each % count == partition][:most]

    def expire(self, tenant: int, after: int, streams: int, most: int, most_bytes: int) -> Expired:
        """Remove updates that have expired of a tenant's next so many streams."""
        self._state.ask_postgres()
        with self._state.lock:
            return expire(self._state, tenant, after, streams, (most, most_bytes))

    def account(self, uses: Sequence[Use]) -> None:
        """Add to the account, and to the processor time of streams still there: no hours."""
        self._state.ask_postgres()
        with self._state.lock:
            there = {ref: number for number, ref in self._state.readable().items()}
            for each in uses:
                key = each.tenant, *each.stream, each.provider
                account = self._state.accounts.setdefault(key, Counter())
                stored = each.bytes - each.replaced
                account.update(updates=each.updates, rows=each.rows, bytes=stored)
                account.update(each.computations, microseconds=each.microseconds)
                if each.microseconds and each.stream in there:
                    self._state.processor_us[there[each.stream]] += each.microseconds

    def used_up(self, most: Mapping[str, int]) -> Mapping[int, str]:
        """Return which tenants have used up one of these quotas, and which one."""
        with self._state.lock:
            ended: Counter[int] = Counter()
            ran: Counter[int] = Counter()
            stored: Counter[int] = Counter()
            for (tenant, *_), account in self._state.accounts.items():
                amounts = {"updates", "rows", "bytes", "microseconds"}
                ended[tenant] += sum(n for name, n in account.items() if name not in amounts)
                stored[tenant] += account["bytes"]
                ran[tenant] += account["microseconds"]
        kinds = (
            (STORED_BYTES, stored, most[STORED_BYTES]),
            (PROCESSOR_SECONDS, ran, most[PROCESSOR_SECONDS] * 10**6),
            (COMPUTATIONS, ended, most[COMPUTATIONS]),
        )
        found: dict[int, str] = {}
        for name, used, enough in kinds:
            found |= {each: name for each in used if used[each] >= enough}
        return found

    def not_acknowledged(
        self, partition: int, emitted_offset: int, next_offset: int
    ) -> list[EmittedRecord]:
        """What was stored from the one to the other, in the order it was made."""
        self._state.ask_postgres()
        with self._state.lock:
            names = self._state.readable()
            rows = [
                row
                for stored_from, row in (*self._state.updates.values(), *self._state.superseded)
                if stored_from == partition
                and row.stream_id in names
                and (
                    emitted_offset <= row.offset <= next_offset
                    or (partition, _key(row)) in self._state.taken_up
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
                for row in sorted(rows, key=lambda each: (*_key(each), each.position))
            ]

    def waiting(self, partition: int) -> dict[int, int]:
        """How many records wait that have been put off, by tenant."""
        self._state.ask_postgres()
        with self._state.lock:
            return dict(Counter(each.tenant for each in self._waiting(partition)))

    def begins_put_off(self, partition: int) -> list[bytes]:
        """Return those of the records that wait by which somebody is fed."""
        self._state.ask_postgres()
        with self._state.lock:
            found = [each.record for each in self._waiting(partition)]
        return [each for each in found if each.startswith(b'{"kind":"begin"')]

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

    def taken_up(self, partition: int) -> list[TreeKey]:
        """Which records are computed late and perhaps not all emitted."""
        self._state.ask_postgres()
        return sorted(key for number, key in self._state.taken_up if number == partition)

    def _waiting(self, partition: int) -> list[PutOff]:
        return [
            each
            for key, each in sorted(self._state.put_off.items())
            if key[0] == partition and key not in self._state.taken_up and not each.held
        ]


def _key(row: StoredUpdate) -> TreeKey:
    return TreeKey(row.offset, row.tree)
