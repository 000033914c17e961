"""The accounts of what delivery has given and used, in Postgres."""

from __future__ import annotations

from collections.abc import Mapping

from servioticy.ports.usage import Given, Spent
from servioticy.storage.arrays import columns, numbers
from servioticy.storage.database import Database
from servioticy.storage.queries import queries


class PostgresUsage:
    """Adds to what tenants have used."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("delivered")

    def deliver(self, counted: Mapping[Given, int]) -> None:
        """Add to the present hour's account. Raises Unavailable."""
        tenants, providers, service_objects, streams = columns(sorted(counted), 4)
        values = {
            "receivers": numbers(tenants),
            "providers": numbers(providers),
            "service_objects": list(service_objects),
            "streams": list(streams),
            "deliveries": numbers(counted[each] for each in sorted(counted)),
        }
        with self._database.transaction():
            self._database.rows(self._sql["deliver"], values)
            self._database.rows(self._sql["deliver_in_all"], values)

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
