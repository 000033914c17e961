"""The ServiceObjects in Postgres."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.service_objects import CurrentVersion, VersionKey
from servioticy.storage.database import Database
from servioticy.storage.queries import queries


class PostgresServiceObjects:
    """Documents of Service Objects, and what can change without a new version."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("service_objects")

    def ids(self, tenant: int) -> list[str]:
        """Return the tenant's Service Objects in order of creation."""
        return [each for (each,) in self._database.rows(self._sql["ids"], {"tenant": tenant})]

    def current(self, key: ServiceObjectKey) -> CurrentVersion | None:
        """Return the Service Object as it is now; None: it does not exist, or not any more."""
        row = self._database.row(self._sql["current"], key._asdict())
        if row is None:
            return None
        version, revision, document, custom_fields, updated_at = row
        fields = None if custom_fields is None else custom_fields.encode()
        return CurrentVersion(version, revision, document.encode(), fields, updated_at)

    def versions(self, key: ServiceObjectKey) -> list[tuple[int, int]]:
        """Return every version with the time it was accepted, oldest first."""
        return self._database.rows(self._sql["versions"], key._asdict())

    def document(self, key: VersionKey) -> bytes | None:
        """That version of the document, as it was accepted."""
        return self.documents([key]).get(key)

    def documents(self, keys: Sequence[VersionKey]) -> dict[VersionKey, bytes]:
        """Return the documents of these versions, of those that exist."""
        values = {
            "tenants": [each.tenant for each in keys],
            "ids": [each.service_object for each in keys],
            "versions": [each.version for each in keys],
        }
        rows = self._database.rows(self._sql["documents"], values)
        return {VersionKey(*key): document.encode() for *key, document in rows}

    def operator_owners(self, key: VersionKey) -> Mapping[str, int]:
        """Whom that version means by the names of others whose programs it names."""
        row = self._database.row(self._sql["operator_owners"], key._asdict())
        return {} if row is None else row[0] or {}

    def customise(
        self, key: ServiceObjectKey, revision: int, custom_fields: bytes | None, now: int
    ) -> bool:
        """Store other customFields, unless the Service Object has changed since that revision."""
        values = key._asdict() | {
            "revision": revision,
            "custom_fields": None if custom_fields is None else custom_fields.decode(),
            "now": now,
        }
        return self._database.row(self._sql["customise"], values) is not None
