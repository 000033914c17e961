"""The Catalog in Postgres."""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec

from servioticy.ports import Address, Change, NewServiceObject, Source
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

_CHANGES = 7_305_808_869_232  # advisory lock: any number that nothing else uses
_change = msgspec.json.Decoder(Change)


class PostgresCatalog:
    """Tenants and their Service Objects."""

    def __init__(self, database: Database) -> None:
        self._database = database
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

    def ids(self, tenant: int) -> list[str]:
        """The tenant's Service Objects in order of creation."""
        return [
            row[0] for row in self._database.rows(self._sql["ids_of_tenant"], {"tenant": tenant})
        ]

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the only right to change the stream graph.

        An advisory lock of this thread's connection: it goes with the connection, so a
        killed program cannot keep it.
        """
        self._database.rows(self._sql["lock_changes"], {"key": _CHANGES})
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
        run, sql = self._database.rows, self._sql
        with self._database.transaction():
            sources = self.sources({ref.service_object for _, ref in new.group_sources})
            change, component = self._place(new, sources, partitions)
            values = {
                "id": new.id,
                "tenant": new.tenant,
                "public": new.public,
                "document": new.document.decode(),
                "version": 1,
                "component": component,
                "partition": change.partition,
                "names": list(new.streams),
                "now": new.created_at,
                "components": list({each.component for each in sources.values()}),
                "groups": [group for group, _ in new.group_sources],
                "sources": [ref.service_object for _, ref in new.group_sources],
            }
            run(sql["add_service_object"], values)
            run(sql["add_definition"], values)
            run(sql["add_streams"], values)
            values["names"] = [ref.stream for _, ref in new.group_sources]
            run(sql["add_internal_subscriptions"], values)
            run(sql["join_components"], values)
            document = msgspec.json.encode(change).decode()
            run(sql["add_pending_change"], {"tenant": new.tenant, "change": document})
        return change

    def _place(
        self, new: NewServiceObject, sources: dict[str, Source], partitions: int
    ) -> tuple[Change, str]:
        """The component it belongs to, and who has to move there: the smaller ones."""
        if not sources:
            row = self._database.row(self._sql["quietest_partition"], {"partitions": partitions})
            return Change(new.id, 1, row[0] if row else 0), new.id
        names = {each.component for each in sources.values()}
        members = self._database.rows(
            self._sql["members_of_components"], {"components": sorted(names)}
        )
        component, _size = Counter(row[1] for row in members).most_common(1)[0]
        partition = next(row[2] for row in members if row[1] == component)
        moves: dict[int, list[str]] = {}
        for id_, _component, route in members:
            if route != partition:
                moves.setdefault(route, []).append(id_)
        moving = tuple((route, tuple(ids)) for route, ids in sorted(moves.items()))
        return Change(new.id, 1, partition, moving), component

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


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
