"""The ChangeStore in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import orjson

from memory import readings
from memory.state import GONE, Edge, GrantRow, ServiceObjectRow, State
from servioticy.domain.balance import apart
from servioticy.domain.model import ServiceObjectKey
from servioticy.domain.placement import Joined, Member, join, least_loaded, moves_to
from servioticy.domain.retention import kept_seconds
from servioticy.errors import Unavailable
from servioticy.ports.change_store import Change, NewGrant, NewServiceObject, Reading


class MemoryChangeStore:
    """Stores changes, one at a time over the whole platform, until the log knows them.

    It has no customFields and no templates: they belong to the API's documents, which have no
    twin.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the only right to change the stream graph."""
        self._state.ask_postgres()
        if not self._state.changes.acquire(timeout=self._state.change_wait_seconds):
            raise Unavailable("others are changing what this changes; try again later")
        try:
            yield
        finally:
            self._state.changes.release()

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is stored inside takes effect together: nobody else reads or changes meanwhile."""
        with self._state.lock:
            yield

    def create(self, new: NewServiceObject, partitions: int) -> Change:
        """Store it, join its components, and note the change as pending; all or nothing."""
        self._state.ask_postgres()
        with self._state.lock:
            if new.id in self._state.service_objects:
                raise ValueError(f"there is a Service Object {new.id}")
            components = self._components_of_sources(new)
            joined = self._join(components) or Joined(new.id, self._least_loaded(partitions), ())
            self._state.service_objects[new.id] = ServiceObjectRow(
                id=new.id,
                tenant=new.tenant,
                sequence=len(self._state.service_objects) + 1,
                public=new.public,
                version=1,
                component=joined.component,
                route_partition=joined.partition,
                owner_partition=joined.partition,
            )
            change = Change(new.id, 1, joined.partition, joined.moves)
            return self._put_in_force(new, change, joined.component, components)

    def replace(
        self, new: NewServiceObject, revision: int, version: int | None = None
    ) -> Change | None:
        """Put another document in force: as a new version, or as that earlier one again."""
        self._state.ask_postgres()
        with self._state.lock:
            row = self._row(ServiceObjectKey(new.tenant, new.id), revision)
            if row is None:
                return None
            components = {row.component, *self._components_of_sources(new)}
            joined = self._join(components) or Joined(row.component, 0, ())
            if version is None:
                version = row.newest_version = row.newest_version + 1
            row.version, row.public, row.revision = version, new.public, revision + 1
            change = Change(new.id, version, joined.partition, joined.moves)
            return self._put_in_force(new, change, joined.component, components)

    def save(self, new: NewServiceObject) -> int | None:
        """Keep the document as a version that is not in force; its number."""
        self._state.ask_postgres()
        with self._state.lock:
            row = self._row(ServiceObjectKey(new.tenant, new.id), None)
            if row is None:
                return None
            row.newest_version += 1
            self._state.definitions[new.id, row.newest_version] = new.document
            self._state.operator_owners[new.id, row.newest_version] = new.operator_owners
            return row.newest_version

    def delete(self, key: ServiceObjectKey, revision: int | None, now: int) -> Change | None:
        """Delete the Service Object; None as for `replace`."""
        self._state.ask_postgres()
        with self._state.lock:
            row = self._row(key, revision)
            if row is None:
                return None
            row.deleted_at = now
            row.revision += 1
            change = Change(row.id, row.version, row.route_partition, kind="deletion")
            return self._note_pending(replace(change, readings=self._ended(row)))

    def erase(self, key: ServiceObjectKey, stream: str) -> Change | None:
        """Note that the stored updates of a stream shall go; None: there is no such stream."""
        self._state.ask_postgres()
        with self._state.lock:
            row = self._row(key, None)
            if row is None or (row.id, stream) not in self._state.streams:
                return None
            return self._note_pending(
                Change(row.id, row.version, row.route_partition, kind="erasure", stream=stream)
            )

    def forget(self, key: ServiceObjectKey, stream: str, now: int) -> Change | None:
        """Note that a stream is to keep nothing of its program; None: there is no such stream."""
        self._state.ask_postgres()
        with self._state.lock:
            row = self._row(key, None)
            if row is None or (row.id, stream) not in self._state.streams:
                return None
            place = row.id, row.version, row.route_partition
            return self._note_pending(Change(*place, kind="forgetting", stream=stream, at=now))

    def fill_in(self, key: ServiceObjectKey, job: str) -> Change | None:
        """Note that a backfill is to take its place; None: it was cancelled."""
        self._state.ask_postgres()
        with self._state.lock:
            row = self._row(key, None)
            if row is None or job not in self._state.backfills:
                return None
            place = row.version, row.route_partition
            return self._note_pending(Change(row.id, *place, kind="backfill", job=job))

    def grant(self, new: NewGrant, most: int) -> Change | None:
        """Note a grant; None where its owner has no such stream, or has made `most` of it."""
        self._state.ask_postgres()
        with self._state.lock:
            row, grant = self._row(new.owner, None), new.grant
            if row is None or (
                grant.stream is not None and (row.id, grant.stream) not in self._state.streams
            ):
                return None
            rows = self._state.grants
            if sum(each.service_object == row.id for each in rows.values()) >= most:
                return None
            rows[grant.id] = GrantRow(grant, row.tenant, row.id, new.expires_at)
            return self._note_pending(
                Change(row.id, row.version, row.route_partition, kind="grant", grant=grant.id)
            )

    def revoke(self, tenant: int, grant: str, now: int) -> Change | None:
        """Revoke a grant of the tenant's: nobody reads by it any more. None: there is none."""
        self._state.ask_postgres()
        with self._state.lock:
            found = self._state.grants.get(grant)
            if found is None or found.tenant != tenant or found.revoked_at is not None:
                return None
            row = self._state.service_object(found.service_object)
            if row is None:
                return None
            found.revoked_at = now
            return self._note_pending(
                Change(row.id, row.version, row.route_partition, kind="revocation", grant=grant)
            )

    def move(self, key: ServiceObjectKey, partition: int, most: int) -> Change | None:
        """Let all that hangs together with it be computed in another partition."""
        self._state.ask_postgres()
        with self._state.lock:
            row = self._row(key, None)
            if row is None:
                return None
            rows = self._state.service_objects.values()
            beside = [each for each in rows if each.component == row.component]
            members = {each.id: each for each in beside if each.deleted_at is None}
            edges = [(each.reader, each.source.service_object) for each in self._state.edges]
            pieces = apart(members, edges)
            piece = next(each for each in pieces if key.id in each)
            routed = [(id_, members[id_].route_partition) for id_ in piece]
            moves = moves_to(partition, routed)
            if not moves or len(piece) > most:
                return None
            if not all(map(self._is_settled, beside)):
                raise Unavailable("what this moves is being changed; try again later")
            for _, ids in moves:
                for each in ids:
                    readings.check_arrived(self._state, members[each])
            for some in pieces if len(pieces) > 1 else ():
                for each in some:
                    members[each].component = some[0]
            told = [e for id_ in sorted(piece) for e in readings.told(self._state, id_, partition)]
            change = Change(key.id, 0, partition, moves, kind="move")
            return self._note_pending(replace(change, readings=tuple(told)))

    def _is_settled(self, row: ServiceObjectRow) -> bool:
        """Whether what was changed of it last is in force."""
        named_by = self._state.named_by.get(row.id, 0)
        is_in_force = row.active_version == row.version and row.active_change >= named_by
        return row.deleted_at is None and is_in_force

    def expired(self, now: int, most: int) -> list[tuple[int, str]]:
        """Grants that have expired and are not revoked: the tenant and the id of each."""
        self._state.ask_postgres()
        with self._state.lock:
            found = [
                (each.expires_at, each.tenant, each.grant.id)
                for each in self._state.grants.values()
                if each.expires_at is not None
                and each.expires_at <= now
                and each.revoked_at is None
                and self._state.service_object(each.service_object)
            ]
        return [(tenant, id_) for _, tenant, id_ in sorted(found)[:most]]

    def overdue(self, before: int, most: int) -> list[tuple[int, Change]]:
        """Deletions and revocations of that time or earlier that are not carried out."""
        self._state.ask_postgres()
        with self._state.lock:
            told = [
                (each.deleted_at, each.tenant, each.id, "")
                for each in self._state.service_objects.values()
                if each.deleted_at is not None and each.active_change < GONE
            ]
            told += [
                (each.revoked_at, each.tenant, each.service_object, each.grant.id)
                for each in self._state.grants.values()
                if each.revoked_at is not None and self._state.service_object(each.service_object)
            ]
            ranks: Counter[int] = Counter()
            found = []
            for told_at, tenant, id_, revoked in sorted(
                each for each in told if each[0] <= before
            ):
                ranks[tenant] += 1
                found.append((ranks[tenant], told_at, tenant, self._end(id_, revoked)))
        found.sort(key=lambda each: each[:3])
        return [(tenant, change) for _rank, _at, tenant, change in found[:most]]

    def tell_again(self, ends: Sequence[tuple[int, Change]]) -> None:
        """Note them as pending once more; carrying one out twice is harmless."""
        self._state.ask_postgres()
        with self._state.lock:
            for _tenant, change in ends:
                self._note_pending(change)

    def pending(self) -> list[tuple[int, Change]]:
        """Changes that are stored but perhaps not yet in the log, oldest first."""
        self._state.ask_postgres()
        with self._state.lock:
            return sorted(self._state.pending.items())

    def leave(self, change: Change) -> None:
        """What is sent to those that move waits from now on, until the change is finished."""
        self._state.ask_postgres()
        with self._state.lock:
            for each in change.moved:
                row = self._state.service_objects[each]
                row.route_partition = min(row.route_partition, ~row.route_partition)

    def finish(self, pending: Mapping[int, Change]) -> None:
        """The changes are in the log: route by them from now on."""
        self._state.ask_postgres()
        with self._state.lock:
            for number, change in pending.items():
                for _old_partition, ids in change.moves:
                    for each in ids:
                        if each in self._state.service_objects:
                            self._state.service_objects[each].route_partition = change.partition
                self._state.pending.pop(number, None)

    def _end(self, id_: str, revoked: str) -> Change:
        row = self._state.service_objects[id_]
        if not revoked:
            change = Change(id_, row.version, row.route_partition, kind="deletion")
            return replace(change, readings=self._ended(row))
        return Change(id_, row.version, row.route_partition, kind="revocation", grant=revoked)

    def _ended(self, row: ServiceObjectRow) -> tuple[Reading, ...]:
        """It reads nothing of others any more."""
        return tuple(readings.told(self._state, row.id, row.route_partition, ends=True))

    def _row(self, key: ServiceObjectKey, revision: int | None) -> ServiceObjectRow | None:
        """Return the tenant's Service Object, if it has not changed since that revision."""
        row = self._state.service_object(key.id)
        if row is None or row.tenant != key.tenant or revision not in (None, row.revision):
            return None
        return row

    def _components_of_sources(self, new: NewServiceObject) -> set[str]:
        rows = [self._state.service_object(ref.service_object) for _, ref in new.group_sources]
        return {each.component for each in rows if each and each.tenant == new.tenant}

    def _join(self, components: set[str]) -> Joined | None:
        joined = join(
            [
                Member(each.id, each.component, each.route_partition)
                for each in self._state.service_objects.values()
                if each.component in components and each.deleted_at is None
            ]
        )
        for _partition, ids in joined.moves if joined else ():
            for each in ids:
                readings.check_arrived(self._state, self._state.service_objects[each])
        return joined

    def _least_loaded(self, partitions: int) -> int:
        rows = self._state.service_objects.values()
        return least_loaded(
            Counter(each.route_partition for each in rows if each.deleted_at is None), partitions
        )

    def _put_in_force(
        self, new: NewServiceObject, change: Change, component: str, joined: set[str]
    ) -> Change:
        """Return the version's streams, what its groups read, its component; all pending."""
        state = self._state
        before = readings.outside(state, new.id)
        for each in state.service_objects.values():
            if each.component in joined:
                each.component = component
        state.definitions.setdefault((new.id, change.version), new.document)
        state.operator_owners.setdefault((new.id, change.version), new.operator_owners)
        for name in new.streams:
            if (new.id, name) not in state.streams:
                state.last_stream += 1
                state.streams[new.id, name] = state.last_stream
        kept = kept_seconds(orjson.loads(new.document))
        state.kept_seconds |= {(new.id, name): kept.get(name) for name in new.streams}
        own = {ref for ref in state.streams if ref[0] == new.id}
        state.undeclared -= own
        state.undeclared |= {ref for ref in own if ref[1] not in new.streams}
        state.edges = [each for each in state.edges if each.reader != new.id]
        state.edges += dict.fromkeys(
            Edge(new.id, group, ref) for group, ref in new.group_sources if ref in state.streams
        )
        moved = sorted(id_ for _, ids in change.moves for id_ in ids if id_ != new.id)
        told = readings.told(state, new.id, change.partition, before)
        told += [e for id_ in moved for e in readings.told(state, id_, change.partition)]
        made = self._note_pending(replace(change, readings=tuple(told)))
        state.named_by[new.id] = state.last_pending
        return made

    def _note_pending(self, change: Change) -> Change:
        self._state.last_pending += 1
        self._state.pending[self._state.last_pending] = change
        return change
