"""What the log is told of who reads streams of other tenants, in Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from servioticy.domain.placement import Moves
from servioticy.errors import Unavailable
from servioticy.ports.change_store import Reading
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

_SQL = queries("readings")


class Edge(NamedTuple):
    """A stream of another tenant that is there, and is read: whose it is, and where computed."""

    reader: str
    service_object: str
    stream: str
    provider: int
    partition: int


def outside_edges(database: Database, tenant: int, readers: Sequence[str]) -> list[Edge]:
    """Return what these Service Objects of a tenant read of others, by the API's versions."""
    values = {"tenant": tenant, "ids": list(readers)}
    return [Edge(*row) for row in database.rows(_SQL["outside_edges"], values)]


def readings(
    tenant: int, to_partition: int, edges: Sequence[Edge], before: Iterable[Edge] = ()
) -> tuple[Reading, ...]:
    """Return what is read from now on, for each reader, provider and partition; also for those of
    which something was read `before`.
    """
    found: dict[tuple[str, int, int], set[tuple[str, str]]] = {}
    now = set(edges)
    for each in (*edges, *before):
        sources = found.setdefault((each.reader, each.partition, each.provider), set())
        if each in now:
            sources.add((each.service_object, each.stream))
    return tuple(
        Reading(reader, tenant, to_partition, provider, partition, tuple(sorted(sources)))
        for (reader, partition, provider), sources in sorted(found.items())
    )


def check_arrived(database: Database, tenant: int, moves: Moves) -> None:
    """Raises Unavailable where one of these has not come to where it moved before.

    With all that it reads of other tenants: what is still to come to where it was before would
    have to follow it twice.
    """
    ids = [each for _, some in moves for each in some]
    if ids and database.rows(_SQL["still_moving"], {"tenant": tenant, "ids": ids}):
        raise Unavailable("what this joins is still moving; try again later")
