"""The Addresses in Postgres."""

from __future__ import annotations

from servioticy.domain.tokens import digest
from servioticy.ports.addresses import Address
from servioticy.storage.database import Database, Prepared
from servioticy.storage.queries import queries


class PostgresAddresses:
    """Looks up what requests name."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("addresses")

    def address(
        self, token: str, service_object: str | None, stream: str | None
    ) -> Address | None:
        """Return who asks, and what they name; None for an unknown token."""
        # Text in Postgres has no NUL: a name with one names nothing.
        if "\0" in (service_object or "") or "\0" in (stream or ""):
            service_object, stream = None, None
        values = {"digest": digest(token), "service_object": service_object, "stream": stream}
        row = self._database.row(Prepared("address", self._sql["address"], values))
        return None if row is None else Address(*row)
