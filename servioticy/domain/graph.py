"""The digraph of subscriptions: which composites an update wakes, directly or not."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from servioticy.domain.levels import Level, Plan, Ranks, levels_of, plan_of, ranks_of
from servioticy.domain.model import Composite, ServiceObject, Stream, StreamRef

MAX_REACHED = 2_000_000
"""Entries of all that is remembered of who reaches whom: 16 MB of references to names."""

MAX_SPLITS = 1000
"""Splits of wakes by refused tenants that are remembered."""


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
        self._tenants = {each.tenant for each, _stream, _composite in self._streams.values()}
        self._refs: dict[str, set[StreamRef]] = {}
        for ref in (*self._streams, *self._wakes):
            self._refs.setdefault(ref.service_object, set()).add(ref)
        self._ranks: Ranks | None = None
        self._reached = _Reached()
        self._splits: dict[tuple[StreamRef, frozenset[int]], Split] = {}

    def merge(self, other: Graph) -> None:
        """Take in the composites of other Service Objects, which subscribe to none of these."""
        self._splits.clear()
        self._ranked().update(other._ranked())
        self._streams.update(other._streams)
        self._wakes.update(other._wakes)
        self._tenants |= other._tenants
        for service_object, refs in other._refs.items():
            self._refs.setdefault(service_object, set()).update(refs)

    def drop(self, service_objects: set[str]) -> None:
        """Forget these Service Objects, which nobody else here subscribes to."""
        self._splits.clear()
        ranks = self._ranked()
        for service_object in service_objects:
            gone = self._refs.pop(service_object, ())
            for known in (self._streams, self._wakes, ranks):
                for ref in gone:
                    known.pop(ref, None)
            self._reached.drop(gone)

    @property
    def shared(self) -> bool:
        """Whether composites of more than one tenant are known here."""
        return len(self._tenants) > 1

    def tenant(self, composite: StreamRef) -> int:
        """The tenant that the composite belongs to."""
        return self._streams[composite][0].tenant

    def wakes(self, origin: StreamRef) -> list[Wake]:
        """The composites that an update of this stream wakes, in order; never itself."""
        return self._wakes.get(origin, [])

    def composite(self, ref: StreamRef) -> tuple[ServiceObject, Stream, Composite]:
        """A composite stream: the Service Object that it belongs to, and how it is computed."""
        return self._streams[ref]

    def is_composite(self, ref: StreamRef) -> bool:
        """Whether the stream is computed (and known to this graph)."""
        return ref in self._streams

    def wakes_but(self, origin: StreamRef, refused: Set[int]) -> Split:
        """Whom an update of this stream wakes: those of tenants that are refused, and others."""
        key = origin, frozenset(refused)
        found = self._splits.get(key)
        if found is None:
            numbered = list(enumerate(self.wakes(origin)))
            theirs = [each for each in numbered if self.tenant(each[1].composite) in refused]
            others = [each for each in numbered if self.tenant(each[1].composite) not in refused]
            if len(self._splits) >= MAX_SPLITS:
                self._splits.clear()
            found = self._splits[key] = Split(others, theirs)
        return found

    def plan(self, origins: Iterable[StreamRef], refused: Set[int] = frozenset()) -> Plan:
        """What updates of these streams can reach, and in which order to compute it.

        Composites of the tenants that are refused are not reached, nor what is behind them.
        A composite has one rank in its component, whoever wakes it. So what is remembered is
        kept by stream, and plans of any set of streams are put together from it.
        """
        ranks = self._ranked()
        reachable: set[StreamRef] = set()
        for origin in origins:
            if refused:
                reachable |= self.reachable([origin], refused)
                continue
            reached = self._reached.get(origin) if origin in self._wakes else ()
            if reached is None:
                reached = tuple(self.reachable([origin]))
                self._reached.put(origin, reached)
            reachable.update(reached)
        return plan_of(reachable, ranks)

    def _ranked(self) -> Ranks:
        """The rank of each composite, worked out when it is first needed."""
        if self._ranks is None:
            self._ranks = ranks_of(self.levels(set(self._streams)))
        return self._ranks

    def reachable(
        self, origins: Iterable[StreamRef], refused: Set[int] = frozenset()
    ) -> set[StreamRef]:
        """Every composite that updates of these streams can wake, directly or not."""
        found: set[StreamRef] = set()
        waiting = list(origins)
        while waiting:
            origin = waiting.pop()
            wakes = self.wakes(origin)
            if refused:
                wakes = [wake for _number, wake in self.wakes_but(origin, refused).others]
            for wake in wakes:
                if wake.composite not in found:
                    found.add(wake.composite)
                    waiting.append(wake.composite)
        return found

    def levels(self, composites: set[StreamRef]) -> list[Level]:
        """These composites, each level after all that it reads."""
        return levels_of(
            self._dependencies(composites), lambda ref: self._streams[ref][2].stepwise
        )

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


class Split(NamedTuple):
    """Whom an update wakes, each with its number: of tenants that are refused, and of others."""

    others: list[tuple[int, Wake]]
    refused: list[tuple[int, Wake]]


class _Reached:
    """What each stream can reach, while there is room; the least recently used goes first."""

    def __init__(self, room: int = MAX_REACHED) -> None:
        self._room = room
        self._known: OrderedDict[StreamRef, tuple[StreamRef, ...]] = OrderedDict()

    def get(self, origin: StreamRef) -> tuple[StreamRef, ...] | None:
        reached = self._known.get(origin)
        if reached is not None:
            self._known.move_to_end(origin)
        return reached

    def put(self, origin: StreamRef, reached: tuple[StreamRef, ...]) -> None:
        self._known[origin] = reached
        self._room -= 1 + len(reached)
        while self._room < 0 and len(self._known) > 1:
            _origin, gone = self._known.popitem(last=False)
            self._room += 1 + len(gone)

    def drop(self, origins: Iterable[StreamRef]) -> None:
        for origin in origins:
            gone = self._known.pop(origin, None)
            if gone is not None:
                self._room += 1 + len(gone)


def _edges(service_object: ServiceObject) -> Iterable[tuple[StreamRef, Wake]]:
    """What this object subscribes to: by source in document order, then by stream.

    The same stream through two groups is two edges (design, section 5, choice 5).
    """
    definition = service_object.definition
    by_name: dict[str, list[tuple[StreamRef, Wake]]] = {}
    for stream in definition.streams:
        for place, each in enumerate(stream.composite.inputs if stream.composite else ()):
            edges = by_name.setdefault(each.name, [])
            wake = Wake(stream.ref, place)
            edges += [(member, wake) for member in each.members if member != stream.ref]
    names = [stream.ref.stream for stream in definition.streams]
    for source in dict.fromkeys([*names, *(group.name for group in definition.groups)]):
        yield from by_name.get(source, ())
