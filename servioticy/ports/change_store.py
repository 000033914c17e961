"""Changes of the stream graph: stored first, then told to the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from servioticy.domain.model import Grant, ServiceObjectKey, StreamRef
from servioticy.domain.placement import Moves


@dataclass(frozen=True, slots=True)
class Reading:
    """What a Service Object reads of one other tenant's streams that are routed to a partition."""

    reader: str
    tenant: int
    """The reader's."""
    to_partition: int
    """Where the reader is routed from this change on."""
    provider: int
    partition: int
    sources: tuple[tuple[str, str], ...] = ()
    """Service Object and stream of each; none where it reads nothing any more."""


Kind: TypeAlias = Literal[
    "definition", "deletion", "erasure", "forgetting", "backfill", "grant", "revocation", "move"
]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the log's meaning: what the log has to be told, in this order.

    `moves` are the Service Objects that leave a partition for the one of the change. A
    definition has a `version`, an erasure a `stream`, a forgetting that and when it is `at`, a
    backfill a `job`, a grant and its revocation a `grant`. A move is nothing but its moves.
    `readings` come last: of the Service Object, and of those that move, all that they read of
    other tenants from now on, for each partition and provider of which it does now or did before.
    """

    service_object: str
    version: int
    partition: int
    moves: Moves = ()
    kind: Kind = "definition"
    stream: str = ""
    job: str = ""
    grant: str = ""
    at: int = 0
    readings: tuple[Reading, ...] = ()

    @property
    def moved(self) -> list[str]:
        """All that move."""
        return [id_ for _, ids in self.moves for id_ in ids]


@dataclass(frozen=True, slots=True)
class MadeFrom:
    """The template that a document was made from: its version, and the values as JSON."""

    template: str
    version: int
    parameters: bytes


@dataclass(frozen=True, slots=True)
class Listed:
    """What a Service Object is listed and searched by, out of its document."""

    name: str | None
    channel_types: list[str]
    fields: list[str] | None
    """of its customFields, as path=value; None: they, and its place, stay as they are"""
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True, slots=True)
class NewServiceObject:
    """A document that the API has checked and wants to put in force."""

    id: str
    tenant: int
    public: bool
    document: bytes
    streams: tuple[str, ...]
    group_sources: tuple[tuple[str, StreamRef], ...]
    """(group name, stream it subscribes to)"""
    created_at: int
    custom_fields: bytes | None = None
    made_from: MadeFrom | None = None
    """None: it follows no template, or from now on none any more"""
    token_digest: bytes | None = None
    """of the token that is for a Service Object that is created"""
    listed: Listed | None = None
    """None: it is derived where the change is made, for which everybody else's waits"""
    operator_owners: Mapping[str, int] = field(default_factory=dict)
    """whom it means by the names of others whose programs it names; not where an earlier version
    comes into force again, which has its own"""

    @property
    def size(self) -> int:
        """How many bytes a tenant has more of documents with it."""
        return len(self.document) + len(self.custom_fields or b"")


@dataclass(frozen=True, slots=True)
class NewGrant:
    """What a tenant wants to let others do with a Service Object of its own."""

    owner: ServiceObjectKey
    grant: Grant
    created_at: int
    expires_at: int | None = None
    """Milliseconds since 1970; None: it stays until it is revoked."""


class ChangeStore(Protocol):
    """Stores changes, one at a time over the whole platform, until the log knows them."""

    def changing(self) -> AbstractContextManager[None]:
        """Hold the only right to change the stream graph.

        Raises Unavailable where others have held it for too long.
        """

    def together(self) -> AbstractContextManager[None]:
        """What is stored inside takes effect together or not at all."""

    def create(self, new: NewServiceObject, partitions: int) -> Change:
        """Store it, join its components, and note the change as pending; all or nothing.

        Components are of one tenant: what it reads of others joins nothing. Raises Unavailable
        where something that would move has not come to where it moved before.
        """

    def replace(
        self, new: NewServiceObject, revision: int, version: int | None = None
    ) -> Change | None:
        """Put another document in force: as a new version, or as that earlier one again.

        An earlier one leaves the customFields alone. None where the tenant has no such Service
        Object, or it has changed since that revision: then nothing is stored. Raises Unavailable
        as `create` does.
        """

    def save(self, new: NewServiceObject) -> int | None:
        """Keep the document as a version that is not in force; its number.

        Of the newest versions some are kept, whether they ever were in force or not. None where
        the tenant has no such Service Object.
        """

    def delete(self, key: ServiceObjectKey, revision: int | None, now: int) -> Change | None:
        """Delete the Service Object; None as for `replace`.

        Without a revision it is deleted whatever has changed.
        """

    def erase(self, key: ServiceObjectKey, stream: str) -> Change | None:
        """Note that the stored updates of a stream shall go; None: there is no such stream."""

    def forget(self, key: ServiceObjectKey, stream: str, now: int) -> Change | None:
        """Note that a stream is to keep nothing of what its program kept, at `now`, in ms.

        None: there is no such stream.
        """

    def fill_in(self, key: ServiceObjectKey, job: str) -> Change | None:
        """Note that what a backfill has computed is to take its place.

        None: it was cancelled, or the Service Object is gone.
        """

    def grant(self, new: NewGrant, most: int) -> Change | None:
        """Note a grant; None where its owner has no such stream, or has made `most` of it."""

    def revoke(self, tenant: int, grant: str, now: int) -> Change | None:
        """Revoke a grant of the tenant's: nobody reads by it any more. None: there is none."""

    def move(self, key: ServiceObjectKey, partition: int, most: int) -> Change | None:
        """Let all that hangs together with a Service Object be computed in another partition.

        What has come apart from it is a component of its own from now on, and stays. None where
        there is nothing to move, or more than `most` Service Objects. Raises Unavailable as
        `create` does, and where something of its component is not in force yet: what that reads
        may still join it.
        """

    def expired(self, now: int, most: int) -> list[tuple[int, str]]:
        """Grants that have expired and are not revoked: the tenant and the id of each."""

    def overdue(self, before: int, most: int) -> list[tuple[int, Change]]:
        """Deletions and revocations of that time or earlier that are not carried out.

        Each with its tenant; the oldest of each tenant come first.
        """

    def tell_again(self, ends: Sequence[tuple[int, Change]]) -> None:
        """Note them as pending once more; carrying one out twice is harmless."""

    def pending(self) -> list[tuple[int, Change]]:
        """Changes that are stored but perhaps not yet in the log, oldest first.

        Their numbers grow with every change of the platform.
        """

    def leave(self, change: Change) -> None:
        """What is sent to those that move waits from now on, until the change is finished."""

    def finish(self, pending: Mapping[int, Change]) -> None:
        """The changes are in the log: route by them from now on."""
