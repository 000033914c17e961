"""The Addresses in Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servioticy.domain.access import MemberRole, Scope, scope_of
from servioticy.domain.placement import read_route
from servioticy.domain.tokens import digest
from servioticy.ports.addresses import Address, Lookup, LookupByPerson
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
        known_by = digest(token)
        values = {"digest": known_by, "service_object": service_object, "stream": stream}
        row = self._database.row(Prepared("address", self._sql["address"], values))
        return None if row is None else _address(row, known_by)

    def addresses(self, lookups: Sequence[Lookup]) -> list[Address | None]:
        """Return the same for many requests at once."""
        named = [_storable(*each[1:]) for each in lookups]
        digests = [digest(token) for token, _, _ in lookups]
        values = {
            "digests": blobs(digests),
            "service_objects": texts([id_.encode() for id_, _ in named]),
            "streams": texts([stream.encode() for _, stream in named]),
        }
        found: list[Address | None] = [None] * len(lookups)
        for number, *row in self._database.rows(
            Prepared("addresses", self._sql["addresses"], values)
        ):
            found[number - 1] = _address(row, digests[number - 1])
        return found

    def of_members(self, lookups: Sequence[LookupByPerson]) -> list[Address | None]:
        """Return the same for persons; None for one that is no member of the tenant."""
        named = [_storable(each.service_object, each.stream) for each in lookups]
        persons = [each.person.digest for each in lookups]
        values = {
            "persons": blobs(persons),
            "names": texts([_storable(each.tenant, "")[0].encode() for each in lookups]),
            "service_objects": texts([id_.encode() for id_, _ in named]),
            "streams": texts([stream.encode() for _, stream in named]),
        }
        found: list[Address | None] = [None] * len(lookups)
        for number, *row in self._database.rows(
            Prepared("addresses_of_members", self._sql["addresses_of_members"], values)
        ):
            found[number - 1] = _address_of_member(row, persons[number - 1])
        return found


def _storable(service_object: str | None, stream: str | None) -> tuple[str, str]:
    """Return names that name nothing where none are given, or where one has a NUL."""
    names = service_object or "", stream or ""
    return ("", "") if any("\0" in each for each in names) else names


def _address(row: Sequence[Any], known_by: bytes) -> Address:
    *address, service_object, stream, rights, token_id, expires_in = row
    scope = Scope(service_object, stream, rights)
    found = _routed(Address(*address))
    return found._replace(scope=scope, token_id=token_id, expires_in=expires_in, known_by=known_by)


def _routed(stored: Address) -> Address:
    partition, leaves = read_route(stored.partition)
    return stored._replace(partition=partition, leaves=leaves)


def _address_of_member(row: Sequence[Any], known_by: bytes) -> Address:
    *address, role, member, expires_in = row
    scope, found = scope_of(MemberRole(role)), _routed(Address(*address))
    return found._replace(
        scope=scope, token_id=f"member/{member}", expires_in=expires_in, known_by=known_by
    )
