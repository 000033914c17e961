"""One of the two versions: what the change concerns in it, and the region that this makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import KnownStream, Region
from servioticy.domain.model import JAVASCRIPT, ClockRef, ServiceObject, StreamRef, WindowRef
from servioticy.domain.pauses import finished
from servioticy.domain.program_code import PROGRAMS
from servioticy.domain.regions import evaluator_of, has_clock, whole
from servioticy.domain.windowed import SILENCE, WINDOWS, WindowsOf, parts
from servioticy.refusals import Refused

COMPUTED = {JAVASCRIPT, WINDOWS, SILENCE}
"""The evaluators that a trial has."""


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
        """Its windows, too, as streams of their own."""
        self.results = frozenset(
            [each for each in self.concerned if not isinstance(each, WindowRef)]
        )
        """Those that have updates."""
        self.triggers = _read_by(own, graph) - self.concerned
        """What the changed document's composites read: updates of these are played."""
        self.reads = _read_by(self.concerned, graph) - self.concerned
        self._graph = graph
        self.windows = _windows(self.concerned, graph)
        """The windows among what is concerned, and what is told of silence."""
        self.into_windows = _read_by(self.windows, graph)
        self.behind_windows = frozenset(
            [each for each in graph.reachable(self.windows) if not isinstance(each, WindowRef)]
        )
        """Streams over windows, and what is derived from those: their updates come when windows
        end, whatever has come then."""

    def read_by(self, composite: StreamRef) -> frozenset[StreamRef]:
        """Return the streams that it reads."""
        return _read_by([composite], self._graph)

    def region(self) -> Region | None:
        """All that it concerns as one region; None where that is nothing. Raises Refused."""
        if not self.concerned:
            return None
        members = [self._graph.stream(each) for each in sorted(self.concerned)]
        if by_program := [each for each in members if evaluator_of(each) == PROGRAMS]:
            raise Refused(
                f"{by_program[0].key} is computed by a program of its own, which a trial does "
                "not ask"
            )
        if others := sorted({evaluator_of(each) for each in members} - COMPUTED):
            raise Refused(f"A trial does not compute {', '.join(others)} yet")
        tenant = members[0].tenant
        known = {ref: KnownStream(ref, tenant, 0, 0, None) for ref in self.reads}
        for each in members:
            if has_clock(each):
                clock = ClockRef(*each.ref)
                known[clock] = self._graph.stream(clock)
        return finished(whole(members, known.get, self._graph.wakes))


def _windows(composites: Iterable[StreamRef], graph: Graph) -> Mapping[StreamRef, WindowsOf]:
    found: dict[StreamRef, WindowsOf] = {}
    for ref in sorted(composites):
        operator = graph.composite(ref).operator
        if isinstance(operator, WindowsOf):
            found[ref] = operator
    return found


def _read_by(composites: Iterable[StreamRef], graph: Graph) -> frozenset[StreamRef]:
    """Return all streams that these read."""
    return frozenset(
        member
        for ref in composites
        for each in graph.composite(ref).inputs
        for member in each.members
    )
