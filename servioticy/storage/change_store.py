"""The ChangeStore in Postgres."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from math import inf
from typing import Any

import msgspec
import orjson

from servioticy.domain.balance import apart
from servioticy.domain.documents.actions import CALLBACK, acting_streams
from servioticy.domain.model import ServiceObjectKey
from servioticy.domain.placement import Joined, Member, join, least_loaded, moves_to
from servioticy.domain.retention import kept_seconds
from servioticy.domain.webhook_secrets import exchanged, new_secret
from servioticy.errors import Unavailable
from servioticy.ports.change_store import (
    Change,
    Kind,
    MadeFrom,
    NewGrant,
    NewServiceObject,
    Reading,
)
from servioticy.storage.database import Database
from servioticy.storage.queries import queries
from servioticy.storage.readings import Edge, check_arrived, outside_edges, readings

_CHANGES = 7_305_808_869_232  # advisory lock: any number that nothing else uses
MAX_VERSIONS = 50
"""Kept of a Service Object, beside those in force and those of dynamic groups."""
LOAD_SECONDS = 10.0
"""So old may be what is known of how many Service Objects each partition has: to count them takes
the longer the more there are, and everybody else's change waits for it."""
_change = msgspec.json.Decoder(Change)


class PostgresChangeStore:
    """Stores changes, one at a time over the whole platform, until the log knows them."""

    def __init__(
        self,
        database: Database,
        change_wait_seconds: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._clock = clock
        self._change_wait_ms = max(1, int(change_wait_seconds * 1000))
        self._sql = queries("change_store")
        self._load: dict[int, int] = {}
        """Service Objects by partition, for whoever holds the right to change"""
        self._load_asked = -inf
        """When that was asked."""

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the only right to change the stream graph.

        An advisory lock of this thread's connection: it goes with the connection, so a
        killed program cannot keep it. Raises Unavailable where others hold it too long.
        """
        values = {"key": _CHANGES, "wait": f"{self._change_wait_ms}ms"}
        with self._database.session():
            with self._database.transaction():
                self._database.rows(self._sql["limit_waiting"], values)
                self._database.rows(self._sql["lock_changes"], values)
            try:
                yield
            finally:
                self._database.rows(self._sql["unlock_changes"], {"key": _CHANGES})

    def together(self) -> AbstractContextManager[None]:
        """What is stored inside takes effect together or not at all."""
        return self._database.transaction()

    def create(self, new: NewServiceObject, partitions: int) -> Change:
        """Store it, join its components, and note the change as pending; all or nothing."""
        with self._database.transaction():
            components = self._components_of_sources(new)
            joined = self._join(new.tenant, components) or Joined(
                new.id, self._least_loaded(partitions), ()
            )
            change = Change(new.id, 1, joined.partition, joined.moves)
            values = _values(new, change) | {"component": joined.component}
            self._database.rows(self._sql["add_service_object"], values)
            self._database.rows(self._sql["add_definition"], values)
            self._list(new, 1)
            if new.made_from is not None:
                self._follow(new, new.made_from)
            if new.token_digest is not None:
                own = {"id": new.id, "tenant": new.tenant, "digest": new.token_digest}
                self._database.rows(self._sql["add_object_token"], own)
            return self._put_in_force(new, change, joined.component, components)

    def replace(
        self, new: NewServiceObject, revision: int, version: int | None = None
    ) -> Change | None:
        """Put another document in force: as a new version, or as that earlier one again."""
        values = {
            "tenant": new.tenant,
            "id": new.id,
            "revision": revision,
            "version": version,
            "public": new.public,
            "custom_fields": _text(new.custom_fields),
            "now": new.created_at,
        }
        with self._database.transaction():
            row = self._database.row(self._sql["replace"], values)
            if row is None:
                return None
            number, component, partition = row
            components = {component, *self._components_of_sources(new)}
            joined = self._join(new.tenant, components - {component}, component) or Joined(
                component, partition, ()
            )
            change = Change(new.id, number, joined.partition, joined.moves)
            if version is None:
                self._database.rows(self._sql["add_definition"], _values(new, change))
            self._list(new, revision + 1)
            if new.made_from is None:
                own = {"id": new.id, "tenant": new.tenant}
                self._database.rows(self._sql["leave_template"], own)
            else:
                self._follow(new, new.made_from)
            before = outside_edges(self._database, new.tenant, [new.id])
            self._database.rows(self._sql["drop_edges"], {"id": new.id, "tenant": new.tenant})
            change = self._put_in_force(new, change, joined.component, components, before)
            self._forget_versions({"id": new.id, "tenant": new.tenant})
        return change

    def save(self, new: NewServiceObject) -> int | None:
        """Keep the document as a version that is not in force; its number."""
        own = {"id": new.id, "tenant": new.tenant}
        with self._database.transaction():
            row = self._database.row(self._sql["next_version"], own)
            if row is None:
                return None
            saved = {"version": row[0], "document": new.document.decode(), "now": new.created_at}
            saved["owners"] = _owners(new)
            self._database.rows(self._sql["save_definition"], own | saved)
            self._forget_versions(own)
        return int(row[0])

    def _forget_versions(self, own: Mapping[str, Any]) -> None:
        self._database.rows(self._sql["forget_versions"], {**own, "keep": MAX_VERSIONS})

    def delete(self, key: ServiceObjectKey, revision: int | None, now: int) -> Change | None:
        """Delete the Service Object; None as for `replace`."""
        values = key._asdict() | {"revision": revision, "now": now}
        with self._database.transaction():
            row = self._database.row(self._sql["delete_service_object"], values)
            if row is None:
                return None
            for each in ("drop_object_tokens", "drop_actuations", "drop_callback"):
                self._database.rows(self._sql[each], values)
            version, partition = row
            change = self._end(key.tenant, key.id, version, partition, None)
            self._note_pending(key.tenant, change)
        return change

    def erase(self, key: ServiceObjectKey, stream: str) -> Change | None:
        """Note that the stored updates of a stream shall go; None: there is no such stream."""
        return self._of_stream(key, stream, "erasure")

    def forget(self, key: ServiceObjectKey, stream: str, now: int) -> Change | None:
        """Note that a stream is to keep nothing of its program, as the port has it."""
        return self._of_stream(key, stream, "forgetting", now)

    def _of_stream(
        self,
        key: ServiceObjectKey,
        stream: str,
        kind: Kind,
        at: int = 0,
    ) -> Change | None:
        values = key._asdict() | {"stream": stream}
        with self._database.transaction():
            row = self._database.row(self._sql["stream_to_erase"], values)
            if row is None:
                return None
            version, partition = row
            change = Change(key.id, version, partition, kind=kind, stream=stream, at=at)
            self._note_pending(key.tenant, change)
        return change

    def fill_in(self, key: ServiceObjectKey, job: str) -> Change | None:
        """Note that a backfill is to take its place; None: it was cancelled."""
        values = key._asdict() | {"job": job}
        with self._database.transaction():
            row = self._database.row(self._sql["fill_in"], values)
            if row is None:
                return None
            version, partition = row
            change = Change(key.id, version, partition, kind="backfill", job=job)
            self._note_pending(key.tenant, change)
        return change

    def grant(self, new: NewGrant, most: int) -> Change | None:
        """Note a grant; None where its owner has no such stream, or has made `most` of it."""
        key, grant = new.owner, new.grant
        values = key._asdict() | {
            "grant": grant.id,
            "stream": grant.stream,
            "grantee": grant.grantee,
            "derived_only": grant.derived_only,
            "now": new.created_at,
            "expires_at": new.expires_at,
            "most": most,
        }
        with self._database.transaction():
            row = self._database.row(self._sql["grant"], values)
            if row is None:
                return None
            version, partition = row
            change = Change(key.id, version, partition, kind="grant", grant=grant.id)
            self._note_pending(key.tenant, change)
        return change

    def revoke(self, tenant: int, grant: str, now: int) -> Change | None:
        """Revoke a grant of the tenant's: nobody reads by it any more. None: there is none."""
        with self._database.transaction():
            values = {"tenant": tenant, "grant": grant, "now": now}
            row = self._database.row(self._sql["revoke"], values)
            if row is None:
                return None
            id_, version, partition = row
            change = Change(id_, version, partition, kind="revocation", grant=grant)
            self._note_pending(tenant, change)
        return change

    def move(self, key: ServiceObjectKey, partition: int, most: int) -> Change | None:
        """Let all that hangs together with it be computed in another partition."""
        with self._database.transaction():
            beside = self._database.rows(self._sql["beside"], key._asdict())
            members = {id_: at for id_, _, at, _, is_there in beside if is_there}
            if key.id not in members:
                return None
            own = {"component": beside[0][1], "tenant": key.tenant}
            edges = self._database.rows(self._sql["edges_within"], own)
            pieces = apart(members, edges)
            piece = next(each for each in pieces if key.id in each)
            moves = moves_to(partition, [(id_, members[id_]) for id_ in piece])
            if not moves or len(piece) > most:
                return None
            if not all(is_settled for *_, is_settled, _ in beside):
                raise Unavailable("what this moves is being changed; try again later")
            check_arrived(self._database, key.tenant, moves)
            for each in pieces if len(pieces) > 1 else ():
                values = {"ids": [*each], "tenant": key.tenant, "component": each[0]}
                self._database.rows(self._sql["name_component"], values)
            edges_out = outside_edges(self._database, key.tenant, piece)
            read = readings(key.tenant, partition, edges_out)
            change = Change(key.id, 0, partition, moves, kind="move", readings=read)
            self._note_pending(key.tenant, change)
        return change

    def expired(self, now: int, most: int) -> list[tuple[int, str]]:
        """Grants that have expired and are not revoked: the tenant and the id of each."""
        values = {"now": now, "most": most}
        return [(each[0], each[1]) for each in self._database.rows(self._sql["expired"], values)]

    def overdue(self, before: int, most: int) -> list[tuple[int, Change]]:
        """Deletions and revocations of that time or earlier that are not carried out."""
        values = {"before": before, "most": most}
        return [
            (tenant, self._end(tenant, *change))
            for tenant, *change in self._database.rows(self._sql["overdue"], values)
        ]

    def _end(
        self, tenant: int, id_: str, version: int, partition: int, revoked: str | None
    ) -> Change:
        """The end of a grant, or of a Service Object, which reads nothing of others any more."""
        if revoked is not None:
            return Change(id_, version, partition, kind="revocation", grant=revoked)
        ended = readings(tenant, partition, (), outside_edges(self._database, tenant, [id_]))
        return Change(id_, version, partition, kind="deletion", readings=ended)

    def tell_again(self, ends: Sequence[tuple[int, Change]]) -> None:
        """Note them as pending once more; carrying one out twice is harmless."""
        with self._database.transaction():
            for tenant, change in ends:
                self._note_pending(tenant, change)

    def pending(self) -> list[tuple[int, Change]]:
        """Changes that are stored but perhaps not yet in the log, oldest first."""
        rows = self._database.rows(self._sql["pending_changes"])
        return [(number, _change.decode(text)) for number, text in rows]

    def leave(self, change: Change) -> None:
        """What is sent to those that move waits from now on, until the change is finished."""
        self._database.rows(self._sql["leave"], {"ids": change.moved})

    def finish(self, pending: Mapping[int, Change]) -> None:
        """The changes are in the log: route by them from now on."""
        with self._database.transaction():
            for change in pending.values():
                moved = change.moved
                if moved:
                    values = {"partition": change.partition, "ids": moved}
                    self._database.rows(self._sql["route"], values)
            self._database.rows(self._sql["drop_pending_changes"], {"changes": list(pending)})

    def _components_of_sources(self, new: NewServiceObject) -> set[str]:
        ids = sorted({ref.service_object for _, ref in new.group_sources})
        values = {"ids": ids, "tenant": new.tenant}
        rows = self._database.rows(self._sql["components_of"], values) if ids else []
        return {component for (component,) in rows}

    def _join(self, tenant: int, others: set[str], *own: str) -> Joined | None:
        """Join these components with its own one; None where there are no others."""
        if not others:
            return None
        values = {"components": sorted({*others, *own}), "tenant": tenant}
        rows = self._database.rows(self._sql["members_of_components"], values)
        joined = join([Member(*row) for row in rows])
        if joined is not None:
            check_arrived(self._database, tenant, joined.moves)
        return joined

    def _least_loaded(self, partitions: int) -> int:
        now = self._clock()
        if now - self._load_asked > LOAD_SECONDS:
            self._load = dict(self._database.rows(self._sql["load"]))
            self._load_asked = now
        chosen = least_loaded(self._load, partitions)
        self._load[chosen] = self._load.get(chosen, 0) + 1
        return chosen

    def _list(self, new: NewServiceObject, revision: int) -> None:
        """Store what it is listed by at this revision, where that is derived already."""
        if new.listed is not None:
            own = {"id": new.id, "tenant": new.tenant, "revision": revision}
            self._database.rows(self._sql["list"], own | asdict(new.listed))

    def _follow(self, new: NewServiceObject, made_from: MadeFrom) -> None:
        """Note which template its document was made from."""
        values = {
            "id": new.id,
            "tenant": new.tenant,
            "template": made_from.template,
            "version": made_from.version,
            "parameters": made_from.parameters.decode(),
        }
        self._database.rows(self._sql["follow_template"], values)

    def _put_in_force(
        self,
        new: NewServiceObject,
        change: Change,
        component: str,
        joined: set[str],
        before: Sequence[Edge] = (),
    ) -> Change:
        """The version's streams, what its groups read, its component; all pending.

        It has read others' streams `before`; what it and those that move read from now on is told
        with the change.
        """
        own = {"tenant": new.tenant, "id": new.id}
        # Not in SQL: text in Postgres has no NUL, JSON may have one.
        document = orjson.loads(new.document)
        kept = kept_seconds(document)
        declared = {"names": list(new.streams), "kept_seconds": [*map(kept.get, new.streams)]}
        self._database.rows(self._sql["declare_streams"], own | declared)
        self._let_act(new, change, document)
        edges = {
            "groups": [group for group, _ in new.group_sources],
            "sources": [ref.service_object for _, ref in new.group_sources],
            "streams": [ref.stream for _, ref in new.group_sources],
        }
        if new.group_sources:
            self._database.rows(self._sql["add_edges"], own | edges)
        if joined - {component}:
            components = {"component": component, "components": sorted(joined)}
            self._database.rows(self._sql["join_components"], components | {"tenant": new.tenant})
        change = replace(change, readings=self._readings(new, change, before))
        named = own | {"version": change.version, "change": self._note_pending(new.tenant, change)}
        self._database.rows(self._sql["name_version"], named)
        return change

    def _readings(
        self, new: NewServiceObject, change: Change, before: Sequence[Edge]
    ) -> tuple[Reading, ...]:
        moved = [each for _, some in change.moves for each in some if each != new.id]
        if not (moved or before or new.group_sources):
            return ()
        edges = outside_edges(self._database, new.tenant, [new.id, *moved])
        own = [each for each in edges if each.reader == new.id]
        others = [each for each in edges if each.reader != new.id]
        return (
            *readings(new.tenant, change.partition, own, before),
            *readings(new.tenant, change.partition, others),
        )

    def _let_act(self, new: NewServiceObject, change: Change, document: dict[str, Any]) -> None:
        """Note which streams of the version ask for actions, and whom it calls with actuations."""
        own, now = {"tenant": new.tenant, "id": new.id}, new.created_at
        if names := acting_streams(document):
            self._database.rows(
                self._sql["add_acting_streams"], own | {"names": names, "now": now}
            )
        callback = document.get(CALLBACK)
        if callback is not None:
            texts = {"callback": callback, "secrets": exchanged([], new_secret(), now)}
            texts = {name: orjson.dumps(each).decode() for name, each in texts.items()}
            self._database.rows(self._sql["name_callback"], own | texts)
        elif change.version > 1:
            self._database.rows(self._sql["drop_callback"], own)

    def _note_pending(self, tenant: int, change: Change) -> int:
        values = {"tenant": tenant, "change": msgspec.json.encode(change).decode()}
        number: int = self._database.rows(self._sql["add_pending_change"], values)[0][0]
        return number


def _values(new: NewServiceObject, change: Change) -> dict[str, Any]:
    """Return what the rows of a Service Object and of its version hold, by name."""
    return {
        "id": new.id,
        "tenant": new.tenant,
        "public": new.public,
        "document": new.document.decode(),
        "owners": _owners(new),
        "custom_fields": _text(new.custom_fields),
        "version": change.version,
        "partition": change.partition,
        "now": new.created_at,
    }


def _owners(new: NewServiceObject) -> str | None:
    return orjson.dumps(dict(new.operator_owners)).decode() if new.operator_owners else None


def _text(document: bytes | None) -> str | None:
    return None if document is None else document.decode()
