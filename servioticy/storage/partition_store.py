"""The PartitionStore in Postgres."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
import psycopg2.errors

from servioticy.domain.documents import Documents
from servioticy.domain.documents.service_objects import ArgumentNames
from servioticy.domain.documents.stored import reading
from servioticy.domain.model import (
    Grant,
    LastUpdate,
    ServiceObject,
    StreamRef,
)
from servioticy.domain.pauses import Paused
from servioticy.domain.quotas import RESTING
from servioticy.domain.records import EmittedRecord
from servioticy.errors import Fenced, Unavailable
from servioticy.ports.accounts import Use
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.borders import Channel, Crossing, OutsideReader
from servioticy.ports.effects import Activate, EndInputs, Erase, Release
from servioticy.ports.expiry import Expired
from servioticy.ports.kept_entries import DueEntry, EntryToAsk, KeptValue
from servioticy.ports.partition_store import (
    ANY_SIZE,
    UNDERSTOOD_AT_ONCE,
    ComponentMember,
    Progress,
)
from servioticy.ports.past import MAX_TOGETHER, ToldPast, WantedPast
from servioticy.ports.put_off import PutOff, TreeKey
from servioticy.storage import borders, expiry, kept_entries, past, put_off
from servioticy.storage.accounts import account
from servioticy.storage.arrays import columns, numbers
from servioticy.storage.batches import batch_parts, fence, superseded, update_columns
from servioticy.storage.database import Copied, Database, Prepared, Row
from servioticy.storage.effects import named_changes, take_effect
from servioticy.storage.purge import purge
from servioticy.storage.queries import queries
from servioticy.storage.replaced import kept_of, replaced
from servioticy.storage.swapping import swapped

log = logging.getLogger("servioticy.storage")

_CLAIM = 1_701_013  # class of our advisory locks: any number that nothing else uses
_BESIDE = 1_701_014
READ_AT_ONCE = 65_536
"""Characters of documents that are read before the first of them is given out."""

PARSED = 128 * 1024 * 1024
"""Bytes of definitions kept parsed: a change loads its whole component anew. Of those that are
alike one."""


class PostgresPartitionStore:
    """What the pipeline keeps: one transaction a batch, with its progress."""

    def __init__(self, database: Database, argument_names: ArgumentNames) -> None:
        self._database = database
        self._sql = queries("partition")
        self._documents = Documents(reading(argument_names), PARSED, keeps_copies=False)
        self._last_crossings: dict[int, int] = {}
        """By partition the last offset of crossings, where there may be any that are not late"""

    def begin(self, partition: int) -> Progress:
        """Claim a partition; its progress, made at zero if new.

        The claim is a lock of this thread's connection, so it goes with the worker. It only
        keeps a second worker from trying: what it stores the fence refuses anyway. Raises
        Unavailable while another worker has it.
        """
        values = {"partition": partition, "key": _CLAIM}
        (claimed,) = self._database.rows(self._sql["claim"], values)[0]
        if not claimed:
            raise Unavailable(f"another worker has partition {partition}")
        (nobody,) = self._database.rows(self._sql["nobody_beside"], _beside(partition))[0]
        if not nobody:
            raise Unavailable(f"what was computed in partition {partition} is still being stored")
        row = self._database.row(self._sql["progress"], values)
        if row is None:
            self._database.rows(self._sql["begin_partition"], values)
            return self.begin(partition)
        borders.forget_unread_marks(self._database, partition)
        last = borders.last_crossing(self._database, partition)
        if last is not None:
            self._last_crossings[partition] = last
        return Progress(*row)

    def claim(self, partition: int) -> int:
        """Return the claim that this thread's connection has; it ends with the connection."""
        values = {"partition": partition, "key": _CLAIM}
        row = self._database.row(self._sql["claimed_by"], values)
        if row is None:
            raise Fenced(f"partition {partition} is not claimed here")
        return int(row[0])

    def end(self, partition: int) -> None:
        """Give up the claim."""
        self._database.rows(self._sql["give_up"], {"partition": partition, "key": _CLAIM})

    def held(self) -> list[int]:
        """The partitions that some worker has claimed."""
        return [row[0] for row in self._database.rows(self._sql["held"], {"key": _CLAIM})]

    def all_progress(self) -> dict[int, int]:
        """The next offset of every partition that has one."""
        return dict(self._database.rows(self._sql["all_progress"]))

    def forwarded(self, partition: int) -> dict[int, int]:
        """From each partition, the offset before which forwarded records were taken."""
        rows = self._database.rows(self._sql["forwarded"], {"partition": partition})
        return dict(rows)

    def component(self, service_object: str) -> list[ComponentMember]:
        """The Service Objects computed together with this one; empty: it does not exist."""
        rows = self._database.rows(self._sql["component"], {"service_object": service_object})
        return [ComponentMember(*row) for row in rows]

    def components(self, ids: Sequence[str]) -> list[list[ComponentMember]]:
        """Return the components that these Service Objects are of, each once."""
        rows = self._database.rows(self._sql["components"], {"ids": list(ids)})
        return [
            [ComponentMember(*row[1:]) for row in members]
            for _component, members in groupby(rows, key=itemgetter(0))
        ]

    def forget_parsed(self, seconds: float) -> int:
        """Forget what definitions mean that were not read for so long; return how many."""
        return self._documents.forget_unused(seconds)

    def service_objects(self, ids: Sequence[str]) -> Iterator[ServiceObject]:
        """Those of them of which a version is in force; each is read when it is asked for."""
        rows = self._database.rows(self._sql["service_objects"], {"ids": list(ids)})
        inputs = borders.inputs(self._database, ids) if rows else {}
        read_in = borders.read_in(self._database, ids) if rows else {}
        some: list[ServiceObject] = []
        size = 0
        for row in rows:
            known = self._service_object(*row)
            own, others = inputs.get(known.id), read_in.get(known.id)
            if own or others:
                known = replace(known, inputs=own or {}, read_in=others or {})
            some.append(known)
            size += len(row[4])
            if size > READ_AT_ONCE:
                yield from self._with_numbers(some)
                some, size = [], 0
        yield from self._with_numbers(some)

    def _service_object(
        self,
        id_: str,
        tenant: int,
        sequence: int,
        version: int,
        document: str,
        owners: Mapping[str, int] | None,
        granted: Sequence[Sequence[Any]] | None,
    ) -> ServiceObject:
        definition = self._documents.understood(id_, version, document).definition
        grants = tuple(Grant(*each) for each in granted or ())
        return ServiceObject(
            definition, tenant, version, sequence, {}, grants, operator_owners=owners or {}
        )

    def changed(
        self, changes: Sequence[Activate], most_bytes: int = ANY_SIZE
    ) -> Mapping[str, ServiceObject]:
        """Return the Service Objects as these make them, by their ids; of many the first."""
        return {row[0]: self._service_object(*row) for row in self._changed(changes, most_bytes)}

    def _changed(self, changes: Sequence[Activate], most_bytes: int) -> Sequence[Row]:
        values = named_changes(changes) | {"most_bytes": most_bytes}
        return self._database.rows(self._sql["changed"], values)

    def understanding(self, change: Activate) -> Paused[object] | None:
        """Return the work to understand what this makes, before it is asked for; if it is much."""
        if self._documents.known(change.service_object, change.version) is not None:
            return None
        for row in self._changed([change], ANY_SIZE):
            document = row[4]
            if len(document) > UNDERSTOOD_AT_ONCE:
                return self._documents.understanding(*change[:2], document)
        return None

    def swapped(self, job: str, *, at_once: bool) -> Paused[None]:
        """Return the work to have a backfill take its place, if that still stands."""
        return swapped(self._database, job, at_once=at_once)

    def _with_numbers(self, some: Sequence[ServiceObject]) -> Iterator[ServiceObject]:
        """The Service Objects with the numbers under which their updates are stored."""
        refs = [
            (each.id, each.tenant, stream.ref.stream)
            for each in some
            for stream in each.definition.streams
        ]
        if not refs:
            yield from some
            return
        service_objects, tenants, names = columns(refs, 3)
        values = {
            "service_objects": list(service_objects),
            "tenants": numbers(tenants),
            "names": list(names),
        }
        found: dict[str, dict[str, int]] = {}
        for service_object, name, number in self._database.rows(self._sql["stored_as"], values):
            found.setdefault(service_object, {})[name] = number
        for each in some:
            # Another partition may just have removed those of an object that it computes.
            theirs = found.get(each.id, {})
            ordered = {
                stream.ref.stream: theirs[stream.ref.stream]
                for stream in each.definition.streams
                if stream.ref.stream in theirs
            }
            yield replace(each, stream_ids=ordered)

    def grant(self, grant: str) -> Grant | None:
        """Return a grant, whether it is in force yet or not; None where it is gone."""
        row = self._database.row(self._sql["grant"], {"grant": grant})
        return None if row is None else Grant(*row)

    def owner(self, service_object: str) -> tuple[int, int] | None:
        """Whose the Service Object is, and its owner partition; None: it does not exist."""
        row = self._database.row(self._sql["owner"], {"service_object": service_object})
        return None if row is None else (row[0], row[1])

    def owners(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Return the same of many: whose each is that exists, and its owner partition."""
        rows = self._database.rows(self._sql["owners"], {"ids": list(ids)}) if ids else []
        return {id_: (tenant, partition) for id_, tenant, partition in rows}

    def erases(self, change: Erase) -> bool:
        """Whether this is a later erasure than the stream's last one."""
        return self._database.row(self._sql["erases"], change._asdict()) is not None

    def closes(self, change: EndInputs) -> Mapping[str, Sequence[StreamRef]]:
        """Return of each reader what it may read until this, which ends it."""
        return borders.closes(self._database, change)

    def channels(self, partition: int, streams: Iterable[StreamRef]) -> dict[StreamRef, Channel]:
        """Return who is fed in the partition with these streams of other tenants, and how far."""
        return borders.channels(self._database, partition, streams)

    def begun_behind(
        self, readers: Sequence[str], streams: Sequence[StreamRef], place: tuple[int, int]
    ) -> set[tuple[str, StreamRef]]:
        """Which of these readers have begun with which of these streams behind a place."""
        return borders.begun_behind(self._database, readers, streams, place)

    def awaiting(self, partition: int) -> dict[int, int]:
        """Which tenants await here what another partition sends on, and how much is held."""
        return borders.awaiting(self._database, partition)

    def last_inputs(
        self, wanted: Iterable[tuple[str, StreamRef]]
    ) -> dict[tuple[str, StreamRef], LastUpdate]:
        """Return what these readers know as the last updates of these streams, if anything."""
        return borders.last_inputs(self._database, wanted)

    def outside_readers(self, service_object: str) -> list[OutsideReader]:
        """Return who of other tenants reads its streams, in order of creation."""
        return borders.outside_readers(self._database, service_object)

    def reading(self, reader: str, provider: int, partition: int) -> list[OutsideReader]:
        """Return what a Service Object reads of a provider's that is computed in a partition."""
        return borders.reading(self._database, reader, provider, partition)

    def crossings(self, partition: int) -> list[Crossing]:
        """Return what is not certain to be where it was sent, in the order it was made."""
        return borders.crossings(self._database, partition)

    def last_updates(self, stream_ids: Iterable[int]) -> dict[int, LastUpdate]:
        """The last updates of those of the streams that have one, with the streams' states."""
        rows = self._database.rows(self._sql["last_updates"], {"streams": numbers(stream_ids)})
        return {
            stream: LastUpdate(at, text.encode(), None if state is None else bytes(state))
            for stream, at, text, state in rows
        }

    def kept(self, wanted: Iterable[tuple[int, bytes]]) -> dict[tuple[int, bytes], KeptValue]:
        """What streams keep under these keys, by stream id and key."""
        return kept_entries.kept(self._database, wanted)

    def past(self, wanted: Sequence[WantedPast], room: int = MAX_TOGETHER) -> ToldPast:
        """Of each of these what is stored of it; None where that is too much."""
        return past.past(self._database, wanted, room)

    def due(self, partition: int, now: int, most: int) -> Sequence[DueEntry]:
        """What is due, the oldest first; at most so many of each tenant."""
        return kept_entries.due(self._database, partition, now, most)

    def to_ask(self, partition: int, most: int) -> Sequence[EntryToAsk]:
        """For what somebody is to be asked, what has waited longest first; so many of each."""
        return kept_entries.to_ask(self._database, partition, most)

    def next_due(self, partition: int, after: int) -> int | None:
        """When the next entry is due behind this time."""
        return kept_entries.next_due(self._database, partition, after)

    def store(self, batch: Batch) -> Mapping[int, int]:
        """Store all or nothing. Raises Fenced where progress is not where the batch begins."""
        try:
            displaced = superseded(batch.updates)
            less = replaced(self._database, batch.updates, displaced)
            less.subtract(self._store(batch, displaced))
        except psycopg2.errors.DivisionByZero as error:
            claimed = "claimed so" if batch.claim else f"at offset {batch.first_offset}"
            raise Fenced(
                f"partition {batch.partition} is no longer {claimed}: another worker has it"
            ) from error
        except psycopg2.errors.UniqueViolation as error:
            if not any(each.is_new for each in batch.updates):
                raise
            facts = {"partition": batch.partition, "offset": batch.first_offset}
            log.exception("update_was_not_new", extra={**facts, "why": str(error)})
            return self.store(
                replace(batch, updates=[e._replace(is_new=False) for e in batch.updates])
            )
        self._note_crossings(batch)
        return less

    def _note_crossings(self, batch: Batch) -> None:
        """Remember whether crossings may be stored, so that who has none never asks."""
        known = self._last_crossings.get(batch.partition)
        if known is not None and batch.claim is None and batch.emitted_offset > known:
            self._last_crossings.pop(batch.partition)
        late = set(batch.taken_up)
        made = [each.offset for each in batch.crossings if each.key not in late]
        if made:
            before = self._last_crossings.get(batch.partition, made[0])
            self._last_crossings[batch.partition] = max(before, *made)

    def _store(self, batch: Batch, displaced: Sequence[StoredUpdate]) -> Mapping[int, int]:
        """Store it; the bytes of what is kept of what it takes back, by stream."""
        parts = [*self._fence(batch), *batch_parts(batch)]
        crossing: list[Prepared | Copied] = [*borders.border_parts(batch)]
        if batch.claim is None and batch.partition in self._last_crossings:
            crossing.append(borders.forgetting_crossings(batch))
        late = batch.put_off or batch.taken_up or batch.emitted_late
        takes_back = any(each.takes_back for each in batch.updates)
        if batch.effect is None and not (displaced or late or takes_back):
            self._database.together(parts + crossing)
            return {}
        with self._database.transaction():
            self._database.together(parts)
            kept = kept_of(self._database, batch.updates)
            if displaced:
                self._set_aside(displaced, batch)
            if isinstance(batch.effect, Release):
                # From now on updates are forwarded: they must not be in another's log while a
                # server that fell has forgotten why.
                self._database.rows(self._sql["wait_for_the_disk"])
            if batch.effect is not None:
                take_effect(self._database, batch.effect, batch.partition)
            if crossing:  # who is fed and who reads is as the effect has made it
                self._database.together(crossing)
            if late:
                self._store_put_off(batch)
        return kept

    def _fence(self, batch: Batch) -> list[Prepared]:
        """What has to be so; else nothing is done that is sent together with this."""
        if batch.claim is None:
            return [fence(batch)]
        return [
            Prepared("store_beside", self._sql["store_beside"], _beside(batch.partition)),
            Prepared(
                "fence_beside",
                self._sql["fence_beside"],
                {"key": _CLAIM, "partition": batch.partition, "claim": batch.claim},
            ),
        ]

    def _store_put_off(self, batch: Batch) -> None:
        """Records that are computed later, and those that have been."""
        if batch.taken_up:
            # What is computed late is not read back from what was emitted, as what follows
            # progress is.
            self._database.rows(self._sql["wait_for_the_disk"])
        if batch.put_off:
            put_off.keep(self._database, batch.partition, batch.put_off)
        if batch.taken_up:
            put_off.note_taken_up(self._database, batch.partition, batch.taken_up)
        if batch.emitted_late:
            put_off.forget_emitted(self._database, batch.partition, batch.emitted_late)
            borders.forget_late_crossings(self._database, batch)

    def _set_aside(self, displaced: Sequence[StoredUpdate], batch: Batch) -> None:
        values = {
            "partition": batch.partition,
            "emitted_offset": batch.emitted_offset,
            "trees": numbers(each.tree for each in displaced),
            **update_columns(displaced),
        }
        self._database.rows(self._sql["forget_superseded"], values)
        self._database.rows(self._sql["set_aside"], values)

    def purge(self, partition: int, most: int, most_bytes: int) -> int | None:
        """Remove a piece of what was deleted or erased; whose it was. None: nothing is left."""
        return purge(self._database, partition, most, most_bytes)

    def left_to_do(self, now: int) -> set[int]:
        """Return partitions with times that have come by now, in ms, or rows to remove."""
        return {row[0] for row in self._database.rows(self._sql["left_to_do"], {"now": now})}

    def keep_for(self, seconds: int | None) -> None:
        """Keep updates for so long of streams that say nothing themselves; None: for ever."""
        expiry.keep_for(self._database, seconds)

    def forgetful(self, partition: int, after: int, most: int) -> list[int]:
        """Return the next tenants, by number, of whom something may expire in its turn."""
        return expiry.forgetful(self._database, partition, after, most)

    def expire(self, tenant: int, after: int, streams: int, most: int, most_bytes: int) -> Expired:
        """Remove updates that have expired of a tenant's next so many streams."""
        return expiry.expire(self._database, tenant, after, streams, most, most_bytes)

    def account(self, uses: Sequence[Use]) -> None:
        """Add to the present hour's account, and to the processor time of streams still there."""
        account(self._database, uses)

    def used_up(self, most: Mapping[str, int]) -> Mapping[int, str]:
        """Return which tenants have used up one of these quotas, and which one."""
        values = {name.replace("-", "_"): most[name] for name in RESTING}
        return dict(self._database.rows(self._sql["used_up"], values))

    def not_acknowledged(
        self, partition: int, emitted_offset: int, next_offset: int
    ) -> list[EmittedRecord]:
        """What was stored from the one to the other, in the order it was made."""
        values = {
            "partition": partition,
            "emitted_offset": emitted_offset,
            "next_offset": next_offset,
        }
        rows = self._database.rows(self._sql["not_acknowledged"], values)
        if rows:  # who gets it again must not have got what a fall makes us forget
            with self._database.transaction():
                self._database.rows(self._sql["wait_for_the_disk"])
                self._database.rows(self._sql["touch"], values)
        return [
            EmittedRecord(
                service_object, stream, tenant, version, at, msgspec.Raw(document.encode())
            )
            for service_object, stream, tenant, version, at, document in rows
        ]

    def waiting(self, partition: int) -> dict[int, int]:
        """How many records wait that have been put off, by tenant."""
        return put_off.waiting(self._database, partition)

    def begins_put_off(self, partition: int) -> list[bytes]:
        """Return those of the records that wait by which somebody is fed."""
        return put_off.begins(self._database, partition)

    def put_off(self, partition: int, tenant: int, most: int, most_bytes: int) -> list[PutOff]:
        """The tenant's records that were put off, oldest first; one at least if there is any."""
        return put_off.oldest(self._database, partition, tenant, most, most_bytes)

    def taken_up(self, partition: int) -> list[TreeKey]:
        """Which records are computed late and perhaps not all emitted."""
        return put_off.taken_up(self._database, partition)


def _beside(partition: int) -> dict[str, int]:
    """The lock of whoever stores late work in a partition."""
    return {"key": _BESIDE, "partition": partition}
