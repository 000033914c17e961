"""The StreamGraph in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memory.state import ServiceObjectRow, State
from servioticy.domain.access import granted
from servioticy.domain.distances import reach
from servioticy.domain.model import Grant
from servioticy.domain.placement import read_route
from servioticy.ports.stream_graph import GraphNode, GroupReader, Related, Relatives


class MemoryStreamGraph:
    """Reads the graph, over all tenants."""

    def __init__(self, state: State) -> None:
        self._state = state

    def nodes(self, ids: Iterable[str]) -> dict[str, GraphNode]:
        """Return those of the Service Objects that exist, by id."""
        self._state.ask_postgres()
        with self._state.lock:
            found = [self._state.service_object(each) for each in ids]
            return {each.id: self._node(each) for each in found if each}

    def _node(self, row: ServiceObjectRow) -> GraphNode:
        streams = tuple(
            name
            for owner, name in self._state.streams
            if owner == row.id and (owner, name) not in self._state.undeclared
        )
        return GraphNode(
            row.id,
            row.tenant,
            granted(row.tenant, row.public, self._grants(row.id)),
            row.revision,
            row.component,
            read_route(row.route_partition).partition,
            streams,
        )

    def grants(self, ids: Iterable[str]) -> dict[str, tuple[Grant, ...]]:
        """Return what others are granted of those of these that grant anything."""
        self._state.ask_postgres()
        with self._state.lock:
            found = {each: self._grants(each) for each in ids}
        return {id_: grants for id_, grants in found.items() if grants}

    def _grants(self, id_: str) -> tuple[Grant, ...]:
        """Those that are not revoked; in memory nothing expires by itself."""
        rows = self._state.grants.values()
        return tuple(e.grant for e in rows if e.service_object == id_ and e.revoked_at is None)

    def readers(
        self,
        service_object: str,
        streams: Iterable[str],
        *,
        first: int | None = None,
        most: int | None = None,
    ) -> list[GroupReader]:
        """Return which other Service Objects read these streams of it by a group, and may."""
        self._state.ask_postgres()
        wanted = set(streams)
        with self._state.lock:
            source = self._state.service_objects[service_object]
            rule = granted(source.tenant, source.public, self._grants(source.id))
            found = []
            for edge in self._state.edges:
                owner, name = edge.source
                reader = self._state.service_object(edge.reader)
                if owner != source.id or name not in wanted or reader in (None, source):
                    continue
                if reader and rule.may_derive(reader.tenant, name):
                    place = reader.tenant != first, reader.sequence
                    found.append((place, GroupReader(reader.id, reader.tenant, name)))
            return [each for _, each in sorted(found)][:most]

    def related(self, ids: Iterable[str], *, upstream: bool, most: int) -> Relatives:
        """Return these and all they are computed from, or all computed from them.

        Nearest first.
        """
        self._state.ask_postgres()

        def neighbours(of: Sequence[str]) -> list[str]:
            ends = [(each.source.service_object, each.reader) for each in self._state.edges]
            if upstream:
                return [source for source, reader in ends if reader in of]
            return [reader for source, reader in ends if source in of]

        with self._state.lock:
            found, complete = reach(ids, neighbours, most)
            rows = filter(None, map(self._state.service_object, found))
            ordered = sorted(rows, key=lambda each: (found[each.id], each.sequence))
            related = [Related(e.id, e.tenant, e.sequence, e.version) for e in ordered]
            return Relatives(related, complete)
