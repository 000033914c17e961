"""Tenants and their Service Objects, as the API keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from servioticy.domain.model import StreamRef
from servioticy.ports.addresses import Address


@dataclass(frozen=True, slots=True)
class Source:
    """A Service Object that a new document wants to subscribe to."""

    id: str
    tenant: int
    public: bool
    component: str
    partition: int
    streams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the log's meaning: what the log has to be told, in this order.

    `moves` are the Service Objects that leave a partition for the one of the change. A
    definition has a `version`, an erasure a `stream`.
    """

    service_object: str
    version: int
    partition: int
    moves: tuple[tuple[int, tuple[str, ...]], ...] = ()
    kind: Literal["definition", "deletion", "erasure"] = "definition"
    stream: str = ""


@dataclass(frozen=True, slots=True)
class NewServiceObject:
    """What the API has checked and wants kept."""

    id: str
    tenant: int
    public: bool
    document: bytes
    streams: tuple[str, ...]
    group_sources: tuple[tuple[str, StreamRef], ...]
    """(group name, stream it subscribes to)"""
    created_at: int
    custom_fields: bytes | None = None


class CurrentVersion(NamedTuple):
    """A Service Object as the API has it: its version in force, and what belongs to none.

    `revision` counts its changes of any kind.
    """

    version: int
    revision: int
    document: bytes
    custom_fields: bytes | None
    updated_at: int


class Related(NamedTuple):
    """A Service Object that another one is computed from, or that is computed from it."""

    id: str
    tenant: int
    sequence: int
    version: int


class Subscriber(NamedTuple):
    """A Service Object that subscribes to a stream of another one by a group."""

    id: str
    tenant: int
    stream: str


class Subscription(NamedTuple):
    """An application's subscription: whose it is, whose the stream, and its document."""

    tenant: int
    owner: int
    document: bytes


class Catalog(Protocol):
    """Tenants and their Service Objects, as the API keeps them."""

    def create_tenant(self, name: str) -> str:
        """Make the tenant unless it exists, and a new token for it, which is returned."""

    def tenant_of(self, token: str) -> int | None:
        """Whose token it is, or None."""

    def address(self, token: str, service_object: str, stream: str | None) -> Address | None:
        """Look up what a request names, or None for an unknown token."""

    def document(self, service_object: str, version: int) -> bytes | None:
        """That version of the document, as it was accepted."""

    def documents(self, versions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], bytes]:
        """The documents of these versions of Service Objects; of those that exist."""

    def ids(self, tenant: int) -> list[str]:
        """The tenant's Service Objects in order of creation."""

    def changing(self) -> AbstractContextManager[None]:
        """Hold the only right to change the stream graph.

        Raises Unavailable where others have held it for too long.
        """

    def sources(self, ids: Iterable[str]) -> dict[str, Source]:
        """Those of the Service Objects that exist."""

    def create(self, new: NewServiceObject, partitions: int) -> Change:
        """Keep it, join its components, and note the change as pending; all or nothing."""

    def current(self, service_object: str) -> CurrentVersion | None:
        """The Service Object as it is now; None: it does not exist, or not any more."""

    def versions(self, service_object: str) -> list[tuple[int, int]]:
        """Every version with the time it was accepted, oldest first."""

    def customise(
        self, service_object: str, revision: int, custom_fields: bytes | None, now: int
    ) -> bool:
        """Keep other customFields, unless it has changed since that revision."""

    def replace(
        self, new: NewServiceObject, revision: int, version: int | None = None
    ) -> Change | None:
        """Put another document in force: as a new version, or as that earlier one again.

        An earlier one leaves the customFields alone. None where the Service Object has
        changed since that revision: then nothing is kept.
        """

    def delete(self, service_object: str, revision: int | None, now: int) -> Change | None:
        """The Service Object does not exist any more; None as for `replace`.

        Without a revision it is deleted whatever has changed.
        """

    def erase(self, service_object: str, stream: str) -> Change | None:
        """Note that the stored updates of a stream shall go; None: there is no such stream."""

    def subscribers(self, service_object: str, streams: Iterable[str]) -> list[Subscriber]:
        """Which other Service Objects subscribe to these streams of it."""

    def related(self, ids: Iterable[str], *, upstream: bool, most: int) -> list[Related]:
        """These and all they are computed from, or all computed from them; nearest first."""

    def pending(self) -> list[tuple[int, Change]]:
        """Changes that are kept but perhaps not yet in the log, oldest first.

        Their numbers grow with every change of the platform.
        """

    def finish(self, pending: int, change: Change) -> None:
        """The change is in the log: route by it from now on."""

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

    def subscriptions(self, stream_id: int) -> list[tuple[int, bytes]]:
        """The applications' subscriptions to a stream with their tenants, oldest first."""

    def subscription(self, subscription: str) -> Subscription | None:
        """An application's subscription, or None."""

    def unsubscribe(self, subscription: str) -> None:
        """Drop a subscription."""
