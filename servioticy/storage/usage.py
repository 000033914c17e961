"""The accounts of what delivery has given and used, in Postgres."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servioticy.domain.model import StreamRef
from servioticy.ports.usage import Given, Spent
from servioticy.storage.arrays import columns, numbers
from servioticy.storage.database import Database
from servioticy.storage.queries import queries
from servioticy.storage.used_grants import used_grants


class PostgresUsage:
    """Adds to what tenants have used."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("delivered")

    def deliver(self, counted: Mapping[Given, int]) -> None:
        """Add to the present hour's account. Raises Unavailable."""
        given = sorted(counted)
        tenants, providers, service_objects, streams = columns(given, 4)
        values = {
            "receivers": numbers(tenants),
            "providers": numbers(providers),
            "service_objects": list(service_objects),
            "streams": list(streams),
            "grants": self._grants(given),
            "deliveries": numbers(counted[each] for each in given),
        }
        with self._database.transaction():
            self._database.rows(self._sql["deliver"], values)
            self._database.rows(self._sql["deliver_in_all"], values)

    def _grants(self, given: Sequence[Given]) -> list[str]:
        """By which each was given; empty where it is the receiver's own, or public."""
        refs = [(each.receiver, StreamRef(each.service_object, each.stream)) for each in given]
        others = {ref for ref, each in zip(refs, given, strict=True) if ref[0] != each.provider}
        found = used_grants(self._database, others, deriving=False)
        return [found.get(ref, "") for ref in refs]

    def spend(self, spent: Mapping[Spent, int]) -> None:
        """Add microseconds of processor time to the same. Raises Unavailable."""
        tenants, service_objects, streams = columns(sorted(spent), 3)
        values = {
            "payers": numbers(tenants),
            "service_objects": list(service_objects),
            "streams": list(streams),
            "processor_us": numbers(spent[each] for each in sorted(spent)),
        }
        with self._database.transaction():
            self._database.rows(self._sql["spend"], values)
            self._database.rows(self._sql["spend_in_all"], values)
