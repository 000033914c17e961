"""The StreamGraph in Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from servioticy.domain.access import granted
from servioticy.domain.distances import reach
from servioticy.domain.model import Grant
from servioticy.ports.stream_graph import GraphNode, GroupReader, Related, Relatives
from servioticy.storage.database import Database
from servioticy.storage.queries import queries


class PostgresStreamGraph:
    """Reads the graph, over all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("stream_graph")

    def nodes(self, ids: Iterable[str]) -> dict[str, GraphNode]:
        """Return those of the Service Objects that exist, by id."""
        rows = self._database.rows(self._sql["nodes"], {"ids": list(ids)})
        return {each.id: each for each in map(_node, rows)}

    def grants(self, ids: Iterable[str]) -> dict[str, tuple[Grant, ...]]:
        """Return what others are granted of those of these that grant anything."""
        found: dict[str, tuple[Grant, ...]] = {}
        for id_, *grant in self._database.rows(self._sql["grants"], {"ids": list(ids)}):
            found[id_] = (*found.get(id_, ()), Grant(*grant))
        return found

    def readers(
        self,
        service_object: str,
        streams: Iterable[str],
        *,
        first: int | None = None,
        most: int | None = None,
    ) -> list[GroupReader]:
        """Return which other Service Objects read these streams of it by a group, and may."""
        values = {
            "service_object": service_object,
            "streams": list(streams),
            "first": first,
            "most": most,
        }
        return [GroupReader(*row) for row in self._database.rows(self._sql["readers"], values)]

    def related(self, ids: Iterable[str], *, upstream: bool, most: int) -> Relatives:
        """Return these and all they are computed from, or all computed from them.

        Nearest first.
        """
        step = self._sql["sources_of" if upstream else "readers_of"]

        def neighbours(of: Sequence[str]) -> list[str]:
            rows = self._database.rows(step, {"ids": list(of), "most": most})
            return [each for (each,) in rows]

        found, complete = reach(ids, neighbours, most)
        rows = self._database.rows(self._sql["related"], {"ids": list(found)}) if found else []
        related = [Related(*row) for row in rows]
        related.sort(key=lambda each: (found[each.id], each.sequence))
        return Relatives(related, complete)


def _node(row: Sequence[Any]) -> GraphNode:
    id_, tenant, public, revision, component, partition, streams, grants = row
    others = granted(tenant, public, tuple(Grant(*each) for each in grants or ()))
    return GraphNode(id_, tenant, others, revision, component, partition, tuple(streams))
