"""One of the two versions: what the change concerns in it, and the region that this makes."""

from __future__ import annotations

from collections.abc import Sequence

from api.replaying.composites import read_by, region_of, windows_of, without_followers
from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import Region
from servioticy.domain.model import ServiceObject, StreamRef, WindowRef
from servioticy.domain.windowed import parts


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
        self.concerned = without_followers(frozenset(own) | graph.reachable(own), graph)
        """Its windows, too, as streams of their own."""
        self.results = frozenset(
            [each for each in self.concerned if not isinstance(each, WindowRef)]
        )
        """Those that have updates."""
        self.triggers = read_by(own, graph) - self.concerned
        """What the changed document's composites read: updates of these are played."""
        self.reads = read_by(self.concerned, graph) - self.concerned
        self._graph = graph
        self.windows = windows_of(self.concerned, graph)
        """The windows among what is concerned, and what is told of silence."""
        self.into_windows = read_by(self.windows, graph)
        self.behind_windows = frozenset(
            [each for each in graph.reachable(self.windows) if not isinstance(each, WindowRef)]
        )
        """Streams over windows, and what is derived from those: their updates come when windows
        end, whatever has come then."""

    def read_by(self, composite: StreamRef) -> frozenset[StreamRef]:
        """Return the streams that it reads."""
        return read_by([composite], self._graph)

    def region(self) -> Region | None:
        """All that it concerns as one region; None where that is nothing. Raises Refused."""
        return region_of(self.concerned, self._graph)
