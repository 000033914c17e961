"""What a request names, and who asks: one question to the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from servioticy.domain.access import Resource, Scope
from servioticy.domain.model import ServiceObjectKey, StreamKey
from servioticy.domain.persons import Person


class Lookup(NamedTuple):
    """What is looked up: a token, and what the request names, if anything."""

    token: str
    service_object: str | None
    stream: str | None


class LookupByPerson(NamedTuple):
    """The same of a person, who has said for which tenant he asks."""

    person: Person
    tenant: str
    service_object: str | None
    stream: str | None


class Address(NamedTuple):
    """Who asks, and what the request names. None where it does not exist."""

    caller: int
    service_object: str | None
    owner: int | None
    granted: bool
    """whether who asks may read what the request names though it is another's"""
    version: int
    partition: int
    stream_id: int | None
    scope: Scope = Scope()
    """What the caller's token is for."""
    token_id: str = ""
    """The id of the token; of a member `member/` and the id of the member."""
    expires_in: float | None = None
    """Seconds for which all this holds: until the token ends, or what is granted; None: no end."""
    known_by: bytes = b""
    """The SHA-256 of the token, or of the person: by it is told that it is good no more."""
    leaves: bool = False
    """Whether it moves to another partition than `partition`: what is sent to it has to wait."""

    @property
    def tenant(self) -> int:
        """Whose the Service Object is; the caller, where none is named."""
        return self.caller if self.owner is None else self.owner

    @property
    def resource(self) -> Resource:
        """What the request is about, as something that belongs to a tenant."""
        return Resource((self.tenant,), self.granted)

    @property
    def key(self) -> ServiceObjectKey | None:
        """The Service Object in the store, or None."""
        found = self.service_object
        return None if found is None else ServiceObjectKey(self.tenant, found)

    @property
    def stream(self) -> StreamKey | None:
        """The stream in the store, or None."""
        return None if self.stream_id is None else StreamKey(self.tenant, self.stream_id)


class Addresses(Protocol):
    """Looks up what requests name."""

    def address(
        self, token: str, service_object: str | None, stream: str | None
    ) -> Address | None:
        """Return who asks, and what they name; None for an unknown token.

        Raises Stranger where it can be told what is wrong with it, Unavailable.
        """

    def addresses(self, lookups: Sequence[Lookup]) -> list[Address | None]:
        """Return the same for many requests at once; None whatever is wrong with a token."""


class StoredAddresses(Addresses, Protocol):
    """Looks them up in the store, which knows tokens of its own, and members."""

    def of_members(self, lookups: Sequence[LookupByPerson]) -> list[Address | None]:
        """Return the same for persons; None for one that is no member of the tenant."""
