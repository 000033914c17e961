"""The Catalog in memory."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import orjson

from servioticy.memory.state import Kept, KeptSubscription, State
from servioticy.ports import Address, Change, NewServiceObject, Source


class MemoryCatalog:
    """Tenants and their Service Objects."""

    def __init__(self, state: State) -> None:
        self._state = state

    def create_tenant(self, name: str) -> str:
        """Make the tenant unless it exists, and a new token for it, which is returned."""
        self._state.ask_postgres()
        token = secrets.token_hex(32)
        with self._state.lock:
            tenant = self._state.tenants.setdefault(name, len(self._state.tenants) + 1)
            self._state.tokens[token] = tenant
        return token

    def tenant_of(self, token: str) -> int | None:
        """Whose token it is, or None."""
        self._state.ask_postgres()
        return self._state.tokens.get(token)

    def address(self, token: str, service_object: str, stream: str | None) -> Address | None:
        """Look up what a request names, or None for an unknown token."""
        caller = self.tenant_of(token)
        if caller is None:
            return None
        with self._state.lock:
            kept = self._state.service_objects.get(service_object)
            if kept is None:
                return Address(caller, None, None, False, 0, 0, None)
            stream_id = self._state.streams.get((kept.id, stream)) if stream is not None else None
            return Address(
                caller,
                kept.id,
                kept.tenant,
                kept.public,
                kept.version,
                kept.route_partition,
                stream_id,
            )

    def document(self, service_object: str, version: int) -> bytes | None:
        """That version of the document, as it was accepted."""
        self._state.ask_postgres()
        return self._state.definitions.get((service_object, version))

    def ids(self, tenant: int) -> list[str]:
        """The tenant's Service Objects in order of creation."""
        self._state.ask_postgres()
        with self._state.lock:
            return [
                each.id for each in self._state.service_objects.values() if each.tenant == tenant
            ]

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the only right to change the stream graph."""
        self._state.ask_postgres()
        with self._state.changes:
            yield

    def sources(self, ids: Iterable[str]) -> dict[str, Source]:
        """Those of the Service Objects that exist."""
        self._state.ask_postgres()
        with self._state.lock:
            found = [self._state.service_objects.get(each) for each in ids]
            return {each.id: self._source(each) for each in found if each is not None}

    def _source(self, kept: Kept) -> Source:
        streams = tuple(name for owner, name in self._state.streams if owner == kept.id)
        return Source(
            kept.id, kept.tenant, kept.public, kept.component, kept.route_partition, streams
        )

    def create(self, new: NewServiceObject, partitions: int) -> Change:
        """Keep it, join its components, and note the change as pending; all or nothing."""
        self._state.ask_postgres()
        with self._state.lock:
            if new.id in self._state.service_objects:
                raise ValueError(f"there is a Service Object {new.id}")
            sources = self.sources({ref.service_object for _, ref in new.group_sources})
            joined = {each.component for each in sources.values()}
            change, component = self._place(new, joined, partitions)
            for each in self._state.service_objects.values():
                if each.component in joined:
                    each.component = component
            self._keep(new, component, change.partition)
            self._state.last_pending += 1
            self._state.pending[self._state.last_pending] = change
            return change

    def _place(
        self, new: NewServiceObject, joined: set[str], partitions: int
    ) -> tuple[Change, str]:
        """Its component and partition: the largest of those it joins; the others move there."""
        everything = self._state.service_objects.values()
        if not joined:
            held = Counter(each.route_partition for each in everything)
            return Change(new.id, 1, min(range(partitions), key=lambda n: (held[n], n))), new.id
        members = [each for each in everything if each.component in joined]
        component, _size = Counter(each.component for each in members).most_common(1)[0]
        partition = next(each.route_partition for each in members if each.component == component)
        moves: dict[int, list[str]] = {}
        for each in members:
            if each.route_partition != partition:
                moves.setdefault(each.route_partition, []).append(each.id)
        moving = tuple((route, tuple(ids)) for route, ids in sorted(moves.items()))
        return Change(new.id, 1, partition, moving), component

    def _keep(self, new: NewServiceObject, component: str, partition: int) -> None:
        state = self._state
        state.service_objects[new.id] = Kept(
            id=new.id,
            tenant=new.tenant,
            sequence=len(state.service_objects) + 1,
            public=new.public,
            version=1,
            component=component,
            route_partition=partition,
            owner_partition=partition,
        )
        state.definitions[new.id, 1] = new.document
        for name in new.streams:
            state.streams[new.id, name] = len(state.streams) + 1
        for group, ref in new.group_sources:
            stream_id = state.streams.get(ref)
            if stream_id is not None:
                document = orjson.dumps({"customFields": {"groupId": group}})
                id_ = secrets.token_hex(16)
                state.subscriptions[id_] = KeptSubscription(
                    id_, new.tenant, stream_id, "internal", new.id, document, new.created_at
                )

    def pending(self) -> list[tuple[int, Change]]:
        """Changes that are kept but perhaps not yet in the log, oldest first."""
        self._state.ask_postgres()
        with self._state.lock:
            return sorted(self._state.pending.items())

    def finish(self, pending: int, change: Change) -> None:
        """The change is in the log: route by it from now on."""
        self._state.ask_postgres()
        with self._state.lock:
            for _old_partition, ids in change.moves:
                for each in ids:
                    if each in self._state.service_objects:
                        self._state.service_objects[each].route_partition = change.partition
            self._state.pending.pop(pending, None)

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
        self._state.ask_postgres()
        with self._state.lock:
            if callback == "pubsub" and any(
                (each.callback, each.stream_id, each.destination)
                == (callback, stream_id, destination)
                for each in self._state.subscriptions.values()
            ):
                return False
            self._state.subscriptions[subscription] = KeptSubscription(
                subscription, tenant, stream_id, callback, destination, document, now
            )
            return True
