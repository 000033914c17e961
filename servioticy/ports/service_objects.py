"""Service Objects as the API shows them: documents, versions, customFields.

Each call names the tenant whose they are: of another tenant's nothing is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from servioticy.domain.model import ServiceObjectKey


class CurrentVersion(NamedTuple):
    """A Service Object's version in force, and what belongs to the object and to no version.

    `revision` counts the object's changes of any kind. Times are milliseconds since 1970.
    """

    version: int
    revision: int
    document: bytes
    custom_fields: bytes | None
    updated_at: int


class VersionKey(NamedTuple):
    """One version of a Service Object, and whose it is."""

    tenant: int
    service_object: str
    version: int


class ServiceObjects(Protocol):
    """Documents of Service Objects, and what can change without a new version."""

    def ids(self, tenant: int) -> list[str]:
        """Return the tenant's Service Objects in order of creation."""

    def current(self, key: ServiceObjectKey) -> CurrentVersion | None:
        """Return the Service Object as it is now; None: it does not exist, or not any more."""

    def versions(self, key: ServiceObjectKey) -> list[tuple[int, int]]:
        """Return every version with the time it was accepted, oldest first."""

    def document(self, key: VersionKey) -> bytes | None:
        """That version of the document, as it was accepted."""

    def documents(self, keys: Sequence[VersionKey]) -> dict[VersionKey, bytes]:
        """Return the documents of these versions, of those that exist."""

    def operator_owners(self, key: VersionKey) -> Mapping[str, int]:
        """Whom that version means by the names of others whose programs it names."""

    def customise(
        self, key: ServiceObjectKey, revision: int, custom_fields: bytes | None, now: int
    ) -> bool:
        """Store other customFields; False, and nothing is stored, where the Service Object has
        changed since that revision."""
