"""The Catalog in memory."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import orjson

from servioticy.errors import Unavailable
from servioticy.memory.state import Kept, KeptSubscription, State
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
            if kept is None or kept.deleted:
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

    def documents(self, versions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], bytes]:
        """The documents of these versions of Service Objects; of those that exist."""
        self._state.ask_postgres()
        found = self._state.definitions
        return {each: found[each] for each in versions if each in found}

    def ids(self, tenant: int) -> list[str]:
        """The tenant's Service Objects in order of creation."""
        self._state.ask_postgres()
        with self._state.lock:
            return [
                each.id
                for each in self._state.service_objects.values()
                if each.tenant == tenant and not each.deleted
            ]

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

    def sources(self, ids: Iterable[str]) -> dict[str, Source]:
        """Those of the Service Objects that exist."""
        self._state.ask_postgres()
        with self._state.lock:
            found = [self._state.service_objects.get(each) for each in ids]
            return {each.id: self._source(each) for each in found if each and not each.deleted}

    def _source(self, kept: Kept) -> Source:
        streams = tuple(
            name
            for owner, name in self._state.streams
            if owner == kept.id and (owner, name) not in self._state.undeclared
        )
        return Source(
            kept.id, kept.tenant, kept.public, kept.component, kept.route_partition, streams
        )

    def create(self, new: NewServiceObject, partitions: int) -> Change:
        """Keep it, join its components, and note the change as pending; all or nothing."""
        self._state.ask_postgres()
        with self._state.lock:
            if new.id in self._state.service_objects:
                raise ValueError(f"there is a Service Object {new.id}")
            joined = self._joined(new)
            component, partition, moves = self._join(joined) or (
                new.id,
                self._quietest(partitions),
                (),
            )
            self._state.service_objects[new.id] = Kept(
                id=new.id,
                tenant=new.tenant,
                sequence=len(self._state.service_objects) + 1,
                public=new.public,
                version=1,
                component=component,
                route_partition=partition,
                owner_partition=partition,
                updated_at=new.created_at,
                custom_fields=new.custom_fields,
            )
            return self._put_in_force(new, Change(new.id, 1, partition, moves), joined, component)

    def replace(
        self, new: NewServiceObject, revision: int, version: int | None = None
    ) -> Change | None:
        """Put another document in force: as a new version, or as that earlier one again.

        An earlier one leaves the customFields alone. None where the Service Object has
        changed since that revision: then nothing is kept.
        """
        self._state.ask_postgres()
        with self._state.lock:
            kept = self._at(new.id, revision)
            if kept is None:
                return None
            if version is None:
                version = kept.newest_version = kept.newest_version + 1
                kept.custom_fields = new.custom_fields
            kept.version, kept.public = version, new.public
            kept.updated_at, kept.revision = new.created_at, revision + 1
            joined = self._joined(new) | {kept.component}
            component, partition, moves = self._join(joined) or (kept.component, 0, ())
            change = Change(new.id, version, partition, moves)
            return self._put_in_force(new, change, joined, component)

    def _joined(self, new: NewServiceObject) -> set[str]:
        sources = self.sources({ref.service_object for _, ref in new.group_sources})
        return {each.component for each in sources.values()}

    def _at(self, service_object: str, revision: int | None) -> Kept | None:
        """The Service Object, if it is there and has not changed since that revision."""
        kept = self._state.service_objects.get(service_object)
        if kept is None or kept.deleted or revision not in (None, kept.revision):
            return None
        return kept

    def _join(
        self, components: set[str]
    ) -> tuple[str, int, tuple[tuple[int, tuple[str, ...]], ...]] | None:
        """These components as one: its name, its partition, and who moves: the smaller ones."""
        members = [
            each
            for each in self._state.service_objects.values()
            if each.component in components and not each.deleted
        ]
        if not members:
            return None
        component, _size = Counter(each.component for each in members).most_common(1)[0]
        partition = next(each.route_partition for each in members if each.component == component)
        moves: dict[int, list[str]] = {}
        for each in members:
            if each.route_partition != partition:
                moves.setdefault(each.route_partition, []).append(each.id)
        return component, partition, tuple((at, tuple(ids)) for at, ids in sorted(moves.items()))

    def _quietest(self, partitions: int) -> int:
        everything = self._state.service_objects.values()
        held = Counter(each.route_partition for each in everything if not each.deleted)
        return min(range(partitions), key=lambda n: (held[n], n))

    def _put_in_force(
        self, new: NewServiceObject, change: Change, joined: set[str], component: str
    ) -> Change:
        """The version's streams, what its groups subscribe to, its component; all pending."""
        state = self._state
        for each in state.service_objects.values():
            if each.component in joined:
                each.component = component
        if (new.id, change.version) not in state.definitions:
            state.definitions[new.id, change.version] = new.document
            state.accepted[new.id, change.version] = new.created_at
        for name in new.streams:
            if (new.id, name) not in state.streams:
                state.last_stream += 1
                state.streams[new.id, name] = state.last_stream
        own = {ref for ref in state.streams if ref[0] == new.id}
        state.undeclared -= own
        state.undeclared |= {ref for ref in own if ref[1] not in new.streams}
        for each_id in [i for i, s in state.subscriptions.items() if _is_internal(s, new.id)]:
            del state.subscriptions[each_id]
        for group, ref in new.group_sources:
            stream_id = state.streams.get(ref)
            if stream_id is not None:
                document = orjson.dumps({"customFields": {"groupId": group}})
                id_ = secrets.token_hex(16)
                state.subscriptions[id_] = KeptSubscription(
                    id_, new.tenant, stream_id, "internal", new.id, document, new.created_at
                )
        return self._keep_pending(change)

    def _keep_pending(self, change: Change) -> Change:
        self._state.last_pending += 1
        self._state.pending[self._state.last_pending] = change
        return change

    def current(self, service_object: str) -> CurrentVersion | None:
        """The Service Object as it is now; None: it does not exist, or not any more."""
        self._state.ask_postgres()
        with self._state.lock:
            kept = self._at(service_object, None)
            if kept is None:
                return None
            document = self._state.definitions[kept.id, kept.version]
            return CurrentVersion(
                kept.version, kept.revision, document, kept.custom_fields, kept.updated_at
            )

    def versions(self, service_object: str) -> list[tuple[int, int]]:
        """Every version with the time it was accepted, oldest first."""
        self._state.ask_postgres()
        with self._state.lock:
            return sorted(
                (version, at)
                for (owner, version), at in self._state.accepted.items()
                if owner == service_object
            )

    def customise(
        self, service_object: str, revision: int, custom_fields: bytes | None, now: int
    ) -> bool:
        """Keep other customFields, unless it has changed since that revision."""
        self._state.ask_postgres()
        with self._state.lock:
            kept = self._at(service_object, revision)
            if kept is None:
                return False
            kept.custom_fields, kept.updated_at = custom_fields, now
            kept.revision += 1
            return True

    def delete(self, service_object: str, revision: int | None, now: int) -> Change | None:
        """The Service Object does not exist any more; None as for `replace`.

        Without a revision it is deleted whatever has changed.
        """
        self._state.ask_postgres()
        with self._state.lock:
            kept = self._at(service_object, revision)
            if kept is None:
                return None
            kept.deleted, kept.updated_at = True, now
            kept.revision += 1
            return self._keep_pending(
                Change(kept.id, kept.version, kept.route_partition, kind="deletion")
            )

    def erase(self, service_object: str, stream: str) -> Change | None:
        """Note that the stored updates of a stream shall go; None: there is no such stream."""
        self._state.ask_postgres()
        with self._state.lock:
            kept = self._at(service_object, None)
            if kept is None or (service_object, stream) not in self._state.streams:
                return None
            at = kept.route_partition
            return self._keep_pending(
                Change(kept.id, kept.version, at, kind="erasure", stream=stream)
            )

    def subscribers(self, service_object: str, streams: Iterable[str]) -> list[Subscriber]:
        """Which other Service Objects subscribe to these streams of it."""
        self._state.ask_postgres()
        with self._state.lock:
            wanted = {
                number: name
                for (owner, name), number in self._state.streams.items()
                if owner == service_object and name in set(streams)
            }
            found = []
            for each in self._state.subscriptions.values():
                to = self._state.service_objects.get(each.destination)
                if to is None or to.deleted or to.id == service_object:
                    continue
                source = self._state.service_objects[service_object]
                if not source.public and source.tenant != to.tenant:
                    continue
                if each.callback == "internal" and each.stream_id in wanted:
                    name = wanted[each.stream_id]
                    found.append((to.sequence, Subscriber(to.id, to.tenant, name)))
            return [each for _, each in sorted(found)]

    def related(self, ids: Iterable[str], *, upstream: bool, most: int) -> list[Related]:
        """These and all they are computed from, or all computed from them; nearest first."""
        self._state.ask_postgres()
        with self._state.lock:
            owners = {number: owner for (owner, _), number in self._state.streams.items()}
            edges = [
                (owners[each.stream_id], each.destination)
                for each in self._state.subscriptions.values()
                if each.callback == "internal"
            ]
            reached = list(dict.fromkeys(ids))
            for each_id in reached:
                for source, reader in edges:
                    here, there = (reader, source) if upstream else (source, reader)
                    if here == each_id and there not in reached:
                        reached.append(there)
            kept = [self._at(each, None) for each in reached[:most]]
            return [Related(k.id, k.tenant, k.sequence, k.version) for k in kept if k]

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

    def subscriptions(self, stream_id: int) -> list[tuple[int, bytes]]:
        """The applications' subscriptions to a stream with their tenants, oldest first."""
        self._state.ask_postgres()
        with self._state.lock:
            found = [s for s in self._state.subscriptions.values() if s.stream_id == stream_id]
            found.sort(key=lambda each: (each.created_at, each.id))
            return [(each.tenant, each.document) for each in found if each.callback != "internal"]

    def subscription(self, subscription: str) -> Subscription | None:
        """An application's subscription, or None."""
        self._state.ask_postgres()
        with self._state.lock:
            kept = self._state.subscriptions.get(subscription)
            if kept is None or kept.callback == "internal":
                return None
            owners = {number: owner for (owner, _), number in self._state.streams.items()}
            owner = self._at(owners[kept.stream_id], None)
            return Subscription(kept.tenant, owner.tenant, kept.document) if owner else None

    def unsubscribe(self, subscription: str) -> None:
        """Drop a subscription."""
        self._state.ask_postgres()
        with self._state.lock:
            kept = self._state.subscriptions.get(subscription)
            if kept is not None and kept.callback != "internal":
                del self._state.subscriptions[subscription]


def _is_internal(subscription: KeptSubscription, destination: str) -> bool:
    return (subscription.callback, subscription.destination) == ("internal", destination)
