"""The accounts of what was delivered, in Postgres."""

from __future__ import annotations

from collections.abc import Mapping

from servioticy.ports.usage import Given
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
