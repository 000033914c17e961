"""Changing the stream graph: stored as pending, told to the log, then answered.

A program may die at any step. What is pending is finished by whoever changes next,
before anything else, and telling the log twice is harmless: the pipeline knows a change
it has made by its number.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import groupby
from typing import TypeVar

from servioticy.domain.model import ServiceObjectKey
from servioticy.domain.placement import LEAVING_SECONDS
from servioticy.domain.records import (
    AcquireRecord,
    AnsweredEvent,
    AnswerRecord,
    BackfillRecord,
    ControlRecord,
    DefinitionRecord,
    DeletionRecord,
    ErasureRecord,
    GrantRecord,
    ReleaseRecord,
    RevocationRecord,
)
from servioticy.errors import ServioticyError
from servioticy.ports.change_store import Change, ChangeStore, NewGrant, NewServiceObject
from servioticy.ports.log import BatchLog
from servioticy.ports.stream_graph import GraphNode, GroupReader, StreamGraph
from servioticy.readings import reading_records
from servioticy.turns import Turns

Wanted = TypeVar("Wanted")

MAX_EXPIRED = 100
"""Grants that end together; others may change something before the next ones do."""

MAX_OVERDUE = 1_000
"""Ends of which the log is told again at once, at most."""

MAX_MOVED = 10_000
"""Service Objects that one record names: half a megabyte of ids."""


class Changed(ServioticyError):
    """The Service Object has changed, or gone, since it was read."""


class StillRead(ServioticyError):
    """Other Service Objects read streams that would go."""

    def __init__(self, readers: list[GroupReader]) -> None:
        super().__init__(f"{len(readers)} groups of others read it")
        self.readers = readers


class NotGranted(ServioticyError):
    """There is no such stream to grant, or as many grants of it as there may be."""


class Changes:
    """Changes of the stream graph, each at one place in the log.

    Every method raises Unavailable where others hold the right to change for too long, or where
    the log does not take the change: then it may still come into force later. So it does where a
    change would move what has not come to where it moved before: then nothing is stored.
    """

    def __init__(
        self,
        graph: StreamGraph,
        store: ChangeStore,
        log: BatchLog,
        sleep: Callable[[float], object] = time.sleep,
        wait_seconds: float = 10.0,
    ) -> None:
        """`wait_seconds`: for the turn of a tenant, and as long again for other processes'."""
        self._graph = graph
        self._store = store
        self._log = log
        self._sleep = sleep
        self._turns = Turns(wait_seconds, "too many changes are being made")

    def create(
        self, new: NewServiceObject, along: AbstractContextManager[object] | None = None
    ) -> None:
        """Create a Service Object; when this returns it is in force for all later updates.

        What `along` stores, before and after, is stored with it or not at all; where that
        raises, nothing is.
        """
        with self._changing(new.tenant), self._store.together(), along or nullcontext():
            self._store.create(new, self._log.partitions())

    def replace(self, new: NewServiceObject, revision: int, version: int | None = None) -> int:
        """Put another document in force; the number of its version.

        With a version it is that earlier one again. Raises Changed where the Service Object is
        not at that revision any more, StillRead where others read a stream that it lacks.
        """
        with self._changing(new.tenant):
            return self._replace(self._graph.nodes([new.id]), new, revision, version).version

    def create_all(self, news: Sequence[NewServiceObject]) -> None:
        """Create Service Objects, in this order; where it raises, perhaps the first ones only."""

        def create(new: NewServiceObject) -> Change:
            return self._store.create(new, self._log.partitions())

        with self._changing(_whose(news)):
            self._each(news, create)

    def replace_all(
        self, wanted: Sequence[tuple[NewServiceObject, int]]
    ) -> dict[str, Changed | StillRead]:
        """Put new documents of Service Objects at these revisions in force.

        Return what `replace` would raise of those for which that cannot be, by their ids.
        """
        refused: dict[str, Changed | StillRead] = {}

        def replace(one: tuple[NewServiceObject, int]) -> Change | None:
            new, revision = one
            try:
                return self._replace(nodes, new, revision)
            except (Changed, StillRead) as error:
                refused[new.id] = error
                return None

        with self._changing(_whose([new for new, _ in wanted])):
            nodes = self._graph.nodes([new.id for new, _ in wanted])
            self._each(wanted, replace)
        return refused

    def _each(self, wanted: Iterable[Wanted], change: Callable[[Wanted], Change | None]) -> None:
        """Make these changes, as many in a transaction as can be.

        Where a change moves Service Objects, the log has to know before the next one is made.
        """
        waiting = iter(wanted)
        moved = True
        while moved:
            moved = False
            with self._store.together():
                for each in waiting:
                    made = change(each)
                    if made is not None and made.moves:
                        moved = True
                        break
            if moved:
                self._finish_pending()

    def _replace(
        self,
        nodes: Mapping[str, GraphNode],
        new: NewServiceObject,
        revision: int,
        version: int | None = None,
    ) -> Change:
        node = nodes.get(new.id)
        if node is None or node.revision != revision:
            raise Changed
        gone = set(node.streams) - set(new.streams)
        readers = self._graph.readers(new.id, gone) if gone else []
        if readers:
            raise StillRead(readers)
        change = self._store.replace(new, revision, version)
        if change is None:
            raise Changed
        return change

    def save(self, new: NewServiceObject) -> int:
        """Keep a document as a version, which `replace` may put in force; its number.

        Nobody has to be told, and nobody else's change is waited for. Raises Changed where the
        Service Object has gone.
        """
        number = self._store.save(new)
        if number is None:
            raise Changed
        return number

    def delete(self, key: ServiceObjectKey, revision: int | None, now: int) -> None:
        """Delete a Service Object of the tenant. Raises Changed as `replace` does."""
        with self._changing(key.tenant):
            if self._store.delete(key, revision, now) is None:
                raise Changed

    def delete_all(self, keys: Sequence[ServiceObjectKey], now: int) -> None:
        """Delete those of the Service Objects that are there, all or none."""
        with self._changing(_whose(keys)), self._store.together():
            for key in keys:
                self._store.delete(key, None, now)

    def erase(self, key: ServiceObjectKey, stream: str) -> None:
        """Forget the stored updates of a stream. Raises Changed where it is not there."""
        with self._changing(key.tenant):
            if self._store.erase(key, stream) is None:
                raise Changed

    def forget(self, key: ServiceObjectKey, stream: str, now: int) -> None:
        """Let a stream keep nothing of what its program kept, from now on, in ms.

        Raises Changed where it is not there.
        """
        with self._changing(key.tenant):
            if self._store.forget(key, stream, now) is None:
                raise Changed

    def fill_in(self, key: ServiceObjectKey, job: str) -> None:
        """Let what a backfill has computed take its place, unless it was cancelled."""
        with self._changing(key.tenant):
            self._store.fill_in(key, job)

    def grant(self, new: NewGrant, most: int) -> None:
        """Let others read; in force for whoever reads, or is created, from now on.

        Raises NotGranted.
        """
        with self._changing(new.owner.tenant):
            if self._store.grant(new, most) is None:
                raise NotGranted

    def revoke(self, tenant: int, grant: str, now: int) -> None:
        """End a grant of the tenant. Raises NotGranted where there is none."""
        with self._changing(tenant):
            if self._store.revoke(tenant, grant, now) is None:
                raise NotGranted

    def move(self, key: ServiceObjectKey, partition: int) -> bool:
        """Have all that hangs together with a Service Object computed in this partition.

        False: there is nothing to move, or so much that one record could not name it.
        """
        with self._changing(key.tenant):
            return self._store.move(key, partition, MAX_MOVED) is not None

    def end_expired(self, now: int) -> bool:
        """End grants that have expired, some of them; whether there were any.

        Nobody asks again for an end that has not reached the log, as clients do: so whatever
        is pending is finished here, too.
        """
        found = self._store.expired(now, MAX_EXPIRED)
        if found or self._store.pending():
            with self._changing(None):
                for tenant, grant in found:
                    self._store.revoke(tenant, grant, now)
        return bool(found)

    def overdue(self, before: int) -> list[tuple[int, Change]]:
        """Return ends that were told at that time or earlier and are not carried out, some."""
        return self._store.overdue(before, MAX_OVERDUE)

    def tell_again(self, ends: Sequence[tuple[int, Change]]) -> None:
        """Tell the log of these ends once more; what is carried out twice changes nothing."""
        with self._changing(None):
            self._store.tell_again(ends)

    @contextmanager
    def _changing(self, tenant: int | None) -> Iterator[None]:
        """Hold the right to change; the log knows of all earlier changes, and then of this one.

        It goes around by `tenant` in this process (None: the platform's own), and between
        processes: what one has many of at once stands ahead of another's once.

        Earlier ones come first, because where a Service Object is routed changes when they are
        finished, and this change is made by it.
        """
        with self._turns.turn(tenant), self._store.changing():
            self._finish_pending()
            yield
            self._finish_pending()

    def _finish_pending(self) -> None:
        """Tell the log what it may not know yet: changes without moves all at once."""
        pending = self._store.pending()
        for moves, some in groupby(pending, key=lambda each: bool(each[1].moves)):
            changes = list(some)
            if moves:
                for number, change in changes:
                    self._let_leave(change)
                    _append(number, change, self._log)
                    self._store.finish({number: change})
                continue
            self._log.append_all([(each.partition, _record(n, each)) for n, each in changes])
            _append_readings(changes, self._log)
            self._store.finish(dict(changes))

    def _let_leave(self, change: Change) -> None:
        """Begin a move: from here on nothing comes where it was but what is under way to there.

        What came behind the release would be forwarded, behind what comes to the new partition.
        """
        self._store.leave(change)
        self._sleep(LEAVING_SECONDS)


def _whose(some: Sequence[NewServiceObject | ServiceObjectKey]) -> int | None:
    """Return the tenant of all of these."""
    return some[0].tenant if some else None


def _append(number: int, change: Change, log: BatchLog) -> None:
    """Each old partition releases before the new one acquires, and that before its use."""
    for old_partition, service_objects in change.moves:
        for first in range(0, len(service_objects), MAX_MOVED):
            some = service_objects[first : first + MAX_MOVED]
            offset = log.append(old_partition, ReleaseRecord(some, change.partition))
            log.append(change.partition, AcquireRecord(some, old_partition, offset))
    if change.kind != "move":
        log.append(change.partition, _record(number, change))
    _append_readings([(number, change)], log)


def _append_readings(changes: Sequence[tuple[int, Change]], log: BatchLog) -> None:
    """Tell providers who reads them from now on, once all of these changes are in the log.

    What a provider answers has to come behind the definition that names its streams.
    """
    records = [
        (reading.partition, record)
        for number, change in changes
        for reading in change.readings
        for record in reading_records(number, reading)
    ]
    if records:
        log.append_all(records)


def _forgetting(change: Change) -> AnswerRecord:
    return AnswerRecord(
        change.service_object,
        change.stream,
        change.at,
        program="",
        version=0,
        begun=0,
        states=0,
        events=(AnsweredEvent(0, change.at),),
        forgets=True,
    )


def _record(number: int, change: Change) -> ControlRecord | AnswerRecord:
    if change.kind == "deletion":
        return DeletionRecord(change.service_object)
    if change.kind == "erasure":
        return ErasureRecord(change.service_object, change.stream, number)
    if change.kind == "forgetting":
        return _forgetting(change)
    if change.kind == "backfill":
        return BackfillRecord(change.service_object, change.job)
    if change.kind == "grant":
        return GrantRecord(change.service_object, change.grant)
    if change.kind == "revocation":
        return RevocationRecord(change.service_object, change.grant)
    return DefinitionRecord(change.service_object, change.version, number)
