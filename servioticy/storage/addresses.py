"""The Addresses in Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servioticy.domain.access import Scope
from servioticy.domain.tokens import digest
from servioticy.ports.addresses import Address, Asked
from servioticy.storage.arrays import blobs, texts
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
        return None if row is None else _address(row)

    def addresses(self, asked: Sequence[Asked]) -> list[Address | None]:
        """Return the same for many requests at once."""
        named = [_storable(*each[1:]) for each in asked]
        values = {
            "digests": blobs([digest(token) for token, _, _ in asked]),
            "service_objects": texts([id_.encode() for id_, _ in named]),
            "streams": texts([stream.encode() for _, stream in named]),
        }
        found: list[Address | None] = [None] * len(asked)
        for number, *row in self._database.rows(
            Prepared("addresses", self._sql["addresses"], values)
        ):
            found[number - 1] = _address(row)
        return found


def _storable(service_object: str | None, stream: str | None) -> tuple[str, str]:
    """Return names that name nothing where none are given, or where one has a NUL."""
    names = service_object or "", stream or ""
    return ("", "") if any("\0" in each for each in names) else names


def _address(row: Sequence[Any]) -> Address:
    *address, service_object, stream, rights, token_id, expires_in = row
    scope = Scope(service_object, stream, rights)
    return Address(*address)._replace(scope=scope, token_id=token_id, expires_in=expires_in)
