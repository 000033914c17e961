"""The Loads in Postgres, by what is stored of the use of streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.loads import Component, PartitionLoad
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

ROW_US = 10
COMPUTATION_US = 5
"""Microseconds of the pipeline for a row that is stored, and for a computation beside its code,
which is metered: a chain of three takes 39 to 54 in all (docs/deployment.md)."""
MAX_MEMBERS = 50_000
"""Service Objects that are looked at, of the components that have done most."""


class PostgresLoads:
    """Tells what has been metered since the beginning of an hour."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("loads")

    def partitions(self, since: int) -> Mapping[int, PartitionLoad]:
        """Return those that have Service Objects."""
        rows = self._database.rows(self._sql["partitions"], _since(since))
        return {number: PartitionLoad(size, load) for number, size, load in rows}

    def component_of(self, key: ServiceObjectKey) -> str | None:
        """Return which component a Service Object is in; None: it is gone."""
        row = self._database.row(self._sql["component_of"], key._asdict())
        return None if row is None else str(row[0])

    def load_of(self, tenant: int, component: str, since: int) -> int:
        """Return microseconds of the work of a tenant's component."""
        own = {"tenant": tenant, "component": component}
        ((load,),) = self._database.rows(self._sql["load_of"], _since(since) | own)
        return int(load)

    def components(self, since: int, most: int) -> Sequence[Component]:
        """Return those that have done most, that first."""
        rows = self._database.rows(self._sql["components"], _since(since) | {"most": most})
        looked_at, left = [], MAX_MEMBERS
        for row in rows:
            if row[5] <= left:
                looked_at.append(row[2])
                left -= row[5]
        named = {"components": looked_at}
        members: defaultdict[str, dict[str, int]] = defaultdict(dict)
        unsettled: set[str] = set()
        found = self._database.rows(self._sql["members"], _since(since) | named)
        for component, id_, load, is_settled, is_there in found:
            if is_there:
                members[component][id_] = load
            if not is_settled:
                unsettled.add(component)
        edges: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for component, reader, source in self._database.rows(self._sql["edges"], named):
            edges[component].append((reader, source))
        return [
            Component(
                tenant,
                name,
                partition,
                members[component],
                load,
                size,
                edges[component],
                component not in unsettled,
            )
            for tenant, name, component, partition, load, size in rows
        ]


def _since(since: int) -> dict[str, int]:
    return {"since": since, "row_us": ROW_US, "computation_us": COMPUTATION_US}
