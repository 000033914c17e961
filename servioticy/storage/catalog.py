"""The Catalog in Postgres."""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from servioticy.ports.addresses import Address
from servioticy.ports.catalog import (
    Change,
    CurrentVersion,
    NewServiceObject,
    Related,
    Source,
    Subscriber,
    Subscription,
)
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

_CHANGES = 7_305_808_869_232  # advisory lock: any number that nothing else uses
_change = msgspec.json.Decoder(Change)


class PostgresCatalog:
    """Tenants and their Service Objects."""

    def __init__(self, database: Database, change_wait_seconds: float = 10.0) -> None:
        self._database = database
        self._change_wait_ms = max(1, int(change_wait_seconds * 1000))
        self._sql = queries("catalog")

    def create_tenant(self, name: str) -> str:
        """Make the tenant unless it exists, and a new token for it, which is returned."""
        token = secrets.token_hex(32)
        with self._database.transaction():
            row = self._database.row(self._sql["add_tenant"], {"name": name})
            row = row or self._database.row(self._sql["tenant_named"], {"name": name})
            if row is None:
                raise LookupError(name)
            self._database.rows(
                self._sql["add_token"], {"digest": _digest(token), "tenant": row[0]}
            )
        return token

    def tenant_of(self, token: str) -> int | None:
        """Whose token it is, or None."""
        row = self._database.row(self._sql["tenant_of_token"], {"digest": _digest(token)})
        return None if row is None else row[0]

    def address(self, token: str, service_object: str, stream: str | None) -> Address | None:
        """Look up what a request names, or None for an unknown token."""
        # Text in Postgres has no NUL: a name with one names nothing.
        if "\0" in service_object or "\0" in (stream or ""):
            service_object, stream = "", None
        values = {"digest": _digest(token), "service_object": service_object, "stream": stream}
        row = self._database.row(self._sql["addressed_stream"], values)
        return None if row is None else Address(*row)

    def document(self, service_object: str, version: int) -> bytes | None:
        """That version of the document, as it was accepted."""
        values = {"service_object": service_object, "version": version}
        row = self._database.row(self._sql["document"], values)
        return None if row is None else row[0].encode()

    def documents(self, versions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], bytes]:
        """The documents of these versions of Service Objects; of those that exist."""
        ids, numbers = [id_ for id_, _ in versions], [number for _, number in versions]
        rows = self._database.rows(self._sql["documents"], {"ids": ids, "versions": numbers})
        return {(id_, version): document.encode() for id_, version, document in rows}

    def ids(self, tenant: int) -> list[str]:
        """The tenant's Service Objects in order of creation."""
        return [
            row[0] for row in self._database.rows(self._sql["ids_of_tenant"], {"tenant": tenant})
        ]

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the only right to change the stream graph.

        An advisory lock of this thread's connection: it goes with the connection, so a
        killed program cannot keep it. Raises Unavailable where others hold it too long.
        """
        values = {"key": _CHANGES, "wait": f"{self._change_wait_ms}ms"}
        with self._database.transaction():
            self._database.rows(self._sql["limit_waiting"], values)
            self._database.rows(self._sql["lock_changes"], values)
        try:
            yield
        finally:
            self._database.rows(self._sql["unlock_changes"], {"key": _CHANGES})

    def sources(self, ids: Iterable[str]) -> dict[str, Source]:
        """Those of the Service Objects that exist."""
        rows = self._database.rows(self._sql["service_objects_named"], {"ids": list(ids)})
        return {
            id_: Source(id_, tenant, public, component, partition, tuple(streams))
            for id_, tenant, public, component, partition, streams in rows
        }

    def create(self, new: NewServiceObject, partitions: int) -> Change:
        """Keep it, join its components, and note the change as pending; all or nothing."""
        with self._database.transaction():
            joined = {each.component for each in self._group_sources(new).values()}
            component, partition, moves = self._join(joined) or (
                new.id,
                self._quietest(partitions),
                (),
            )
            change = Change(new.id, 1, partition, moves)
            values = _values(new, change, component)
            self._database.rows(self._sql["add_service_object"], values)
            self._database.rows(self._sql["add_definition"], values)
            self._keep_graph(values, joined)
            self._keep_pending(new.tenant, change)
        return change

    def replace(
        self, new: NewServiceObject, revision: int, version: int | None = None
    ) -> Change | None:
        """Put another document in force: as a new version, or as that earlier one again.

        An earlier one leaves the customFields alone. None where the Service Object has
        changed since that revision: then nothing is kept.
        """
        asked = {
            "id": new.id,
            "revision": revision,
            "version": version,
            "public": new.public,
            "custom_fields": _text(new.custom_fields),
            "now": new.created_at,
        }
        with self._database.transaction():
            row = self._database.row(self._sql["replace"], asked)
            if row is None:
                return None
            joined = {row[1], *(each.component for each in self._group_sources(new).values())}
            component, partition, moves = self._join(joined) or (row[1], 0, ())
            change = Change(new.id, row[0], partition, moves)
            values = _values(new, change, component)
            if version is None:
                self._database.rows(self._sql["add_definition"], values)
            self._database.rows(self._sql["drop_internal_subscriptions"], values)
            self._keep_graph(values, joined)
            self._keep_pending(new.tenant, change)
        return change

    def _group_sources(self, new: NewServiceObject) -> dict[str, Source]:
        return self.sources({ref.service_object for _, ref in new.group_sources})

    def _join(
        self, components: set[str]
    ) -> tuple[str, int, tuple[tuple[int, tuple[str, ...]], ...]] | None:
        """These components as one: its name, its partition, and who moves: the smaller ones.

        None where there are none to join.
        """
        members = self._database.rows(
            self._sql["members_of_components"], {"components": sorted(components)}
        )
        if not members:
            return None
        component, _size = Counter(row[1] for row in members).most_common(1)[0]
        partition = next(row[2] for row in members if row[1] == component)
        moves: dict[int, list[str]] = {}
        for id_, _component, route in members:
            if route != partition:
                moves.setdefault(route, []).append(id_)
        return component, partition, tuple((at, tuple(ids)) for at, ids in sorted(moves.items()))

    def _quietest(self, partitions: int) -> int:
        row = self._database.row(self._sql["quietest_partition"], {"partitions": partitions})
        return row[0] if row else 0

    def _keep_graph(self, values: dict[str, Any], joined: set[str]) -> None:
        """The streams of the version in force, what its groups subscribe to, its component."""
        self._database.rows(self._sql["declare_streams"], values)
        values = values | {"names": values["source_streams"], "components": sorted(joined)}
        self._database.rows(self._sql["add_internal_subscriptions"], values)
        self._database.rows(self._sql["join_components"], values)

    def _keep_pending(self, tenant: int, change: Change) -> None:
        values = {"tenant": tenant, "change": msgspec.json.encode(change).decode()}
        self._database.rows(self._sql["add_pending_change"], values)

    def current(self, service_object: str) -> CurrentVersion | None:
        """The Service Object as it is now; None: it does not exist, or not any more."""
        row = self._database.row(self._sql["current"], {"service_object": service_object})
        if row is None:
            return None
        version, revision, document, custom_fields, updated_at = row
        fields = None if custom_fields is None else custom_fields.encode()
        return CurrentVersion(version, revision, document.encode(), fields, updated_at)

    def versions(self, service_object: str) -> list[tuple[int, int]]:
        """Every version with the time it was accepted, oldest first."""
        return self._database.rows(self._sql["versions"], {"service_object": service_object})

    def customise(
        self, service_object: str, revision: int, custom_fields: bytes | None, now: int
    ) -> bool:
        """Keep other customFields, unless it has changed since that revision."""
        values = {
            "service_object": service_object,
            "revision": revision,
            "custom_fields": _text(custom_fields),
            "now": now,
        }
        return self._database.row(self._sql["customise"], values) is not None

    def delete(self, service_object: str, revision: int | None, now: int) -> Change | None:
        """The Service Object does not exist any more; None as for `replace`.

        Without a revision it is deleted whatever has changed.
        """
        values = {"service_object": service_object, "revision": revision, "now": now}
        with self._database.transaction():
            row = self._database.row(self._sql["delete_service_object"], values)
            if row is None:
                return None
            change = Change(service_object, row[1], row[2], kind="deletion")
            self._keep_pending(row[0], change)
        return change

    def erase(self, service_object: str, stream: str) -> Change | None:
        """Note that the stored updates of a stream shall go; None: there is no such stream."""
        values = {"service_object": service_object, "stream": stream}
        with self._database.transaction():
            row = self._database.row(self._sql["stream_to_erase"], values)
            if row is None:
                return None
            change = Change(service_object, row[1], row[2], kind="erasure", stream=stream)
            self._keep_pending(row[0], change)
        return change

    def subscribers(self, service_object: str, streams: Iterable[str]) -> list[Subscriber]:
        """Which other Service Objects subscribe to these streams of it."""
        values = {"service_object": service_object, "streams": list(streams)}
        return [Subscriber(*row) for row in self._database.rows(self._sql["subscribers"], values)]

    def related(self, ids: Iterable[str], *, upstream: bool, most: int) -> list[Related]:
        """These and all they are computed from, or all computed from them; nearest first."""
        sql = self._sql["upstream" if upstream else "downstream"]
        rows = self._database.rows(sql, {"ids": list(ids), "most": most})
        return [Related(*row) for row in rows]

    def pending(self) -> list[tuple[int, Change]]:
        """Changes that are kept but perhaps not yet in the log, oldest first."""
        rows = self._database.rows(self._sql["pending_changes"])
        return [(number, _change.decode(text)) for number, text in rows]

    def finish(self, pending: int, change: Change) -> None:
        """The change is in the log: route by it from now on."""
        moved = [id_ for _, ids in change.moves for id_ in ids]
        with self._database.transaction():
            self._database.rows(self._sql["route"], {"partition": change.partition, "ids": moved})
            self._database.rows(self._sql["drop_pending_change"], {"change": pending})

    def subscribe(
        self,
        subscription: str,
        tenant: int,
        stream_id: int,
        callback: str,
        destination: str,
        document: bytes,
        now: int,
    ) -> bool:
        """Keep a subscription; False where the same pubsub one exists already."""
        values = {
            "id": subscription,
            "tenant": tenant,
            "stream": stream_id,
            "callback": callback,
            "destination": destination,
            "document": document.decode(),
            "now": now,
        }
        return self._database.row(self._sql["add_subscription"], values) is not None

    def subscriptions(self, stream_id: int) -> list[tuple[int, bytes]]:
        """The applications' subscriptions to a stream with their tenants, oldest first."""
        rows = self._database.rows(self._sql["subscriptions_of_stream"], {"stream": stream_id})
        return [(tenant, document.encode()) for tenant, document in rows]

    def subscription(self, subscription: str) -> Subscription | None:
        """An application's subscription, or None."""
        if "\0" in subscription:
            return None
        row = self._database.row(self._sql["subscription"], {"subscription": subscription})
        return None if row is None else Subscription(row[0], row[1], row[2].encode())

    def unsubscribe(self, subscription: str) -> None:
        """Drop a subscription."""
        self._database.rows(self._sql["unsubscribe"], {"subscription": subscription})


def _values(new: NewServiceObject, change: Change, component: str) -> dict[str, Any]:
    """What the statements about one Service Object need, by name."""
    return {
        "id": new.id,
        "tenant": new.tenant,
        "public": new.public,
        "document": new.document.decode(),
        "custom_fields": _text(new.custom_fields),
        "version": change.version,
        "component": component,
        "partition": change.partition,
        "names": list(new.streams),
        "now": new.created_at,
        "groups": [group for group, _ in new.group_sources],
        "sources": [ref.service_object for _, ref in new.group_sources],
        "source_streams": [ref.stream for _, ref in new.group_sources],
    }


def _text(document: bytes | None) -> str | None:
    return None if document is None else document.decode()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
