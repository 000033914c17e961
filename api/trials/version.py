"""One of the two versions: what the change concerns in it, and the region that this makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import KnownStream, Region
from servioticy.domain.model import JAVASCRIPT, ServiceObject, StreamRef
from servioticy.domain.pauses import finished
from servioticy.domain.regions import evaluator_of, whole
from servioticy.domain.windowed import parts
from servioticy.refusals import Refused


class Version:
    """What the change concerns in one version: its composites, and what is derived from them."""

    def __init__(self, service_objects: Sequence[ServiceObject], changed: str) -> None:
        graph = Graph(service_objects)
        graph.regions()  # which says of each composite whether it settles
        own = [
            part.ref
            for service_object in service_objects
            if service_object.id == changed
            for each in service_object.definition.streams
            for part in parts(each)
            if part.composite is not None
        ]
        self.concerned = frozenset(own) | graph.reachable(own)
        self.triggers = _read_by(own, graph) - self.concerned
        """What the changed document's composites read: updates of these are played."""
        self.reads = _read_by(self.concerned, graph) - self.concerned
        self._graph = graph

    def region(self) -> Region | None:
        """All that it concerns as one region; None where that is nothing. Raises Refused."""
        if not self.concerned:
            return None
        members = [self._graph.stream(each) for each in sorted(self.concerned)]
        if others := sorted({evaluator_of(each) for each in members} - {JAVASCRIPT}):
            raise Refused(f"A trial computes {JAVASCRIPT} only, and not yet {', '.join(others)}")
        tenant = members[0].tenant
        read = {ref: KnownStream(ref, tenant, 0, 0, None) for ref in self.reads}
        return finished(whole(members, read.get, self._graph.wakes))


def _read_by(composites: Iterable[StreamRef], graph: Graph) -> frozenset[StreamRef]:
    """Return all streams that these read."""
    return frozenset(
        member
        for ref in composites
        for each in graph.composite(ref).inputs
        for member in each.members
    )
