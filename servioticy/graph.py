"""The digraph of subscriptions: who is woken by an update, and in which order to compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from servioticy.model import Composite, ServiceObject, Stream, StreamRef


class Wake(NamedTuple):
    """An edge: an update of some stream wakes this composite through that input."""

    composite: StreamRef
    input: int


class Graph:
    """The composites of some Service Objects and what wakes them.

    An update is offered to the streams of its own object first, in document order, then
    to subscribers in order of subscription (design, section 5, choice 2).
    """

    def __init__(self, service_objects: Iterable[ServiceObject]) -> None:
        self._streams: dict[StreamRef, tuple[ServiceObject, Stream, Composite]] = {}
        self._wakes: dict[StreamRef, list[Wake]] = {}
        subscribers: dict[StreamRef, list[Wake]] = {}
        for service_object in sorted(service_objects, key=lambda each: each.sequence):
            for stream in service_object.definition.streams:
                if stream.composite is not None:
                    self._streams[stream.ref] = (service_object, stream, stream.composite)
            for ref, wake in _edges(service_object):
                own = ref.service_object == service_object.id
                (self._wakes if own else subscribers).setdefault(ref, []).append(wake)
        for ref, wakes in subscribers.items():
            self._wakes.setdefault(ref, []).extend(wakes)

    def merge(self, other: Graph) -> None:
        """Take in the composites of other Service Objects, which subscribe to none of these."""
        self._streams.update(other._streams)
        self._wakes.update(other._wakes)

    def drop(self, service_objects: set[str]) -> None:
        """Forget these Service Objects, which nobody else here subscribes to."""
        for known in (self._streams, self._wakes):
            for ref in [each for each in known if each.service_object in service_objects]:
                del known[ref]

    def wakes(self, origin: StreamRef) -> list[Wake]:
        """Whom an update of this stream wakes, in order; the stream itself never."""
        return self._wakes.get(origin, [])

    def composite(self, ref: StreamRef) -> tuple[ServiceObject, Stream, Composite]:
        """A composite stream with the object it belongs to."""
        return self._streams[ref]

    def is_composite(self, ref: StreamRef) -> bool:
        """Whether the stream is computed (and known here)."""
        return ref in self._streams

    def reachable(self, origins: Iterable[StreamRef]) -> set[StreamRef]:
        """Every composite that updates of these streams can wake, directly or not."""
        found: set[StreamRef] = set()
        waiting = list(origins)
        while waiting:
            for wake in self.wakes(waiting.pop()):
                if wake.composite not in found:
                    found.add(wake.composite)
                    waiting.append(wake.composite)
        return found

    def levels(self, composites: set[StreamRef]) -> list[list[StreamRef]] | None:
        """These composites, each after all it reads; None where they form a cycle."""
        sorter = TopologicalSorter(self._dependencies(composites))
        try:
            sorter.prepare()
        except CycleError:
            return None
        levels = []
        while sorter.is_active():
            ready = list(sorter.get_ready())
            levels.append(ready)
            sorter.done(*ready)
        return levels

    def _dependencies(self, composites: set[StreamRef]) -> Mapping[StreamRef, set[StreamRef]]:
        """What each reads of the others.

        Its own last output does not count, being threaded through its computations; read
        in any other way, as a member of a group, it makes a cycle of one.
        """
        return {
            ref: {
                member
                for place, each in enumerate(self._streams[ref][2].inputs)
                if place != self._streams[ref][2].own
                for member in each.members
                if member in composites
            }
            for ref in composites
        }


def _edges(service_object: ServiceObject) -> Iterable[tuple[StreamRef, Wake]]:
    """What this object subscribes to: by source in document order, then by stream.

    The same stream through two groups is two edges (design, section 5, choice 5).
    """
    definition = service_object.definition
    sources = [stream.ref.stream for stream in definition.streams]
    sources += [group.name for group in definition.groups if group.name not in sources]
    for source in sources:
        for stream in definition.streams:
            for place, each in enumerate(stream.composite.inputs if stream.composite else ()):
                if each.name == source:
                    for member in each.members:
                        if member != stream.ref:
                            yield member, Wake(stream.ref, place)
