"""The digraph of subscriptions: which composites an update wakes, directly or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeAlias
from weakref import WeakValueDictionary

from sandbox.trees import CLOCK, FOLLOWS
from servioticy.domain.borders import kept, outside_inputs
from servioticy.domain.cutting import cutting
from servioticy.domain.known_streams import Entry, KnownStream, Region, Wake
from servioticy.domain.model import (
    ClockRef,
    Composite,
    InputRef,
    ServiceObject,
    Stream,
    StreamRef,
    WindowRef,
)
from servioticy.domain.patterns import Copy, Pattern, can_be_shared, is_alone
from servioticy.domain.pauses import PAUSE, Paces, Paused, finished
from servioticy.domain.plans import Needs, Plan, needs_of, plan_of
from servioticy.domain.regions import Shared, has_clock, whole
from servioticy.domain.remembered import Remembered
from servioticy.domain.windowed import parts

__all__ = ["Graph", "KnownStream", "Wake"]

MAX_REMEMBERED = 2_000_000
"""Entries of all that is remembered of who reaches whom: 16 MB of references."""

Whole: TypeAlias = tuple[tuple[Entry, ...], ...]
"""Of each of some streams what its update enters, where all is one region."""


class Graph:
    """The streams of some Service Objects and what wakes the composites among them.

    An update is offered to the streams of its own object first, in document order, then
    to subscribers in order of subscription.
    """

    def __init__(self, service_objects: Iterable[ServiceObject]) -> None:
        self._streams: dict[StreamRef, KnownStream] = {}
        self._wakes: dict[StreamRef, list[Wake]] = {}
        self._refs: dict[str, set[StreamRef]] = {}
        self._parts: dict[StreamRef, _Part] = {}
        self._copies: dict[str, Copy] = {}
        """Components of one Service Object each that are like others, by its id."""
        self._patterns: WeakValueDictionary[int, Pattern] = WeakValueDictionary()
        """By the identity of the definition that those of the copies are like, which it holds."""
        self._shared = Shared()
        self._plans: Remembered[StreamRef, Plan] = Remembered(MAX_REMEMBERED)
        self._needs: Remembered[tuple[str, int], Needs] = Remembered(MAX_REMEMBERED)
        self._wholes: Remembered[StreamRef, Whole] = Remembered(MAX_REMEMBERED)
        finished(self._take_in(service_objects))

    def component(self, service_objects: Iterable[ServiceObject]) -> Paused[Graph]:
        """Make the graph of other Service Objects, cut into regions; `merge` takes it in."""
        made = Graph(())
        made._shared = self._shared
        yield from made._take_in(service_objects)
        for part in dict.fromkeys(made._parts.values()):
            yield from part.cutting(self._shared)
        return made

    def pattern_of(self, service_object: ServiceObject) -> Pattern | None:
        """What a component of this Service Object alone is made by, if an equal one is known."""
        definition = service_object.definition
        found = self._patterns.get(id(definition.like or definition))
        return found if is_alone(service_object) else None

    def copy(self, pattern: Pattern, service_object: ServiceObject) -> None:
        """Take in the component of a Service Object, made by its pattern."""
        self._copies[service_object.id] = pattern.copy(service_object)

    def made_by(self, service_object: str) -> Pattern | None:
        """What the component of a Service Object was made by, if others may be like it."""
        copy = self._copies.get(service_object)
        return None if copy is None else copy.pattern

    def merge_alone(self, other: Graph, service_object: ServiceObject) -> None:
        """Take in the component of one Service Object, which is cut; others may be like it."""
        if not is_alone(service_object) or not can_be_shared(other.regions()):
            self.merge(other)
            return
        definition = service_object.definition.like or service_object.definition
        streams = [other.stream(each.ref) for each in service_object.definition.streams]
        pattern = self._patterns[id(definition)] = Pattern(definition, streams, other.wakes)
        self.copy(pattern, service_object)

    def _take_in(self, service_objects: Iterable[ServiceObject]) -> Paused[None]:
        subscribers: dict[StreamRef, list[Wake]] = {}
        paces, edges = Paces(PAUSE), Paces()
        for each in sorted(service_objects, key=lambda each: each.sequence):
            for stream in each.definition.streams:
                if paces.pauses(1):
                    yield
                self._take_in_stream(stream, each)
            yield from self._take_in_inputs(each)
            for ref, wake in (yield from _edges(each)):
                if edges.pauses(1):
                    yield
                own = ref.service_object == each.id
                (self._wakes if own else subscribers).setdefault(ref, []).append(wake)
        for number, (ref, wakes) in enumerate(subscribers.items()):
            if not number % PAUSE:
                yield
            self._wakes.setdefault(ref, []).extend(wakes)
        for number, ref in enumerate((*self._streams, *self._wakes)):
            if not number % PAUSE:
                yield
            if not isinstance(ref, InputRef):
                self._refs.setdefault(ref.service_object, set()).add(ref)
        part = _Part(dict(self._streams), dict(self._wakes))
        self._parts = dict.fromkeys(self._streams, part)

    def _take_in_stream(self, stream: Stream, service_object: ServiceObject) -> None:
        """As what it is computed: its windows, if it has some, and itself."""
        tenant, version = service_object.tenant, service_object.version
        known = {each.ref: _known(each, service_object) for each in parts(stream)}
        for ref, each in known.items():
            self._streams[ref] = each
            if ref != stream.ref:
                each.feeds = known[stream.ref]
            if has_clock(each):
                clock = ClockRef(*ref)
                self._streams[clock] = KnownStream(clock, tenant, version, 0, None)

    def _take_in_inputs(self, service_object: ServiceObject) -> Paused[None]:
        """What it reads of other tenants goes with it: nobody else reads that."""
        keeps = None
        for number, (ref, provider) in enumerate(outside_inputs(service_object), 1):
            if not number % PAUSE:
                yield
            if ref in self._streams:
                continue
            if keeps is None:
                keeps = frozenset(kept(service_object.definition))
            keeper = (service_object.tenant, service_object.id) if ref in keeps else None
            self._streams[ref] = KnownStream(ref, provider, 0, 0, None, keeper=keeper)
            self._refs.setdefault(service_object.id, set()).add(ref)

    def merge(self, other: Graph) -> None:
        """Take in the streams of other Service Objects, which subscribe to none of these."""
        self._streams.update(other._streams)
        self._wakes.update(other._wakes)
        self._parts.update(other._parts)
        for service_object, refs in other._refs.items():
            self._refs.setdefault(service_object, set()).update(refs)

    def drop(self, service_objects: set[str]) -> list[InputRef]:
        """Forget these Service Objects, which nobody else here subscribes to.

        Returns their inputs from outside.
        """
        inputs: list[InputRef] = []
        for service_object in service_objects:
            copy = self._copies.pop(service_object, None)
            if copy is not None:
                self._wholes.drop({each.ref for each in copy.streams})
                continue
            gone = self._refs.pop(service_object, set())
            for known in (self._streams, self._wakes, self._parts):
                for ref in gone:
                    known.pop(ref, None)
            self._plans.drop(gone)
            self._wholes.drop(gone)
            inputs += [ref for ref in gone if isinstance(ref, InputRef)]
        return inputs

    def knows(self, ref: StreamRef) -> bool:
        """Whether the stream is known."""
        return self._found(ref) is not None

    def stream(self, ref: StreamRef) -> KnownStream:
        """The stream, which has to be known."""
        found = self._found(ref)
        if found is None:
            raise KeyError(ref)
        return found

    def _found(self, ref: StreamRef) -> KnownStream | None:
        copy = self._copy(ref)
        return self._streams.get(ref) if copy is None else copy.stream(ref.stream)

    def _copy(self, ref: StreamRef) -> Copy | None:
        """The component that the stream is of, if it is like others."""
        return None if isinstance(ref, InputRef) else self._copies.get(ref.service_object)

    def wakes(self, origin: StreamRef) -> Sequence[Wake]:
        """The composites that an update of this stream wakes, in order; never itself."""
        copy = self._copy(origin)
        return self._wakes.get(origin, ()) if copy is None else copy.wakes(origin.stream)

    def composite(self, ref: StreamRef) -> Composite:
        """How a composite stream is computed."""
        composite = self.stream(ref).composite
        if composite is None:
            raise KeyError(ref)
        return composite

    def plan(self, origin: KnownStream) -> Plan:
        """What an update of this stream enters, and what has to be known to compute its tree."""
        return finished(self.planning(origin))

    def planning(self, origin: KnownStream) -> Paused[Plan]:
        """The same with pauses, where it is not known."""
        copy = self._copy(origin.ref)
        if copy is not None:
            return (yield from copy.planning(origin.ref.stream, self._needing))
        plan = self._plans.get(origin.ref)
        if plan is None:
            self._cut(origin)
            plan = yield from plan_of(origin, self._needing)
            if self._found(origin.ref) is origin:  # still
                self._plans.put(origin.ref, plan, 1 + len(plan.streams) + len(plan.groups))
        return plan

    def needed(self, plans: Iterable[Plan]) -> Iterable[StreamRef]:
        """Return the streams whose last updates trees of these plans need."""
        needed: dict[StreamRef, None] = {}
        groups = {}
        for plan in plans:
            needed.update(dict.fromkeys([each.ref for each in plan.streams]))
            groups.update({(region, id(members)): members for region, members in plan.groups})
        for (region, _id), members in groups.items():
            streams = [region.streams[member] for member in members]
            needed.update(dict.fromkeys([each.ref for each in streams if each is not None]))
        return needed

    def needs(self, region: Region, node: int) -> Needs:
        """What has to be known where an update of this stream of the region enters it.

        Equal regions need the same.
        """
        return finished(self._needing(region, node, Paces()))

    def _needing(self, region: Region, node: int, paces: Paces) -> Paused[Needs]:
        key = region.wiring.id, node
        needs = self._needs.get(key)
        if needs is None:
            needs = yield from needs_of(region.wiring, node, paces)
            self._needs.put(key, needs, 1 + len(needs.lasts) + len(needs.groups))
        return needs

    def whole(self, origins: Sequence[KnownStream]) -> Paused[Whole]:
        """All that updates of these streams can reach, as a region that each of them enters.

        It is to be taken step by step. What has been cut as one region is that one.
        """
        plans: list[Plan] = []
        for each in origins:
            plans.append((yield from self.planning(each)))
        entered = {region for each in origins for region, _node in each.entries}
        if len(entered) <= 1 and all(plan.parts == 1 for plan in plans):
            return tuple([each.entries for each in origins])
        found = self._wholes.get(origins[0].ref) if len(origins) == 1 else None
        if found is None:
            found, size = yield from self._whole(origins)
            is_known_still = self._found(origins[0].ref) is origins[0]
            if len(origins) == 1 and is_known_still:
                self._wholes.put(origins[0].ref, found, size)
        return found

    def _whole(self, origins: Sequence[KnownStream]) -> Paused[tuple[Whole, int]]:
        reached = yield from self._reaching([each.ref for each in origins])
        members: list[KnownStream] = []
        for number, each in enumerate(reached):
            if not number % PAUSE:
                yield
            members.append(self.stream(each))
        if not members:
            return tuple(() for _ in origins), 1
        region = yield from whole(members, self._found, self.wakes)
        numbers = {each: n for n, each in enumerate(region.streams) if each is not None}
        entries = [((region, numbers[each]),) if each in numbers else () for each in origins]
        return tuple(entries), len(region.streams)

    def reachable(self, origins: Iterable[StreamRef]) -> set[StreamRef]:
        """Every composite that updates of these streams can wake, directly or not."""
        return set(finished(self._reaching(origins)))

    def _reaching(self, origins: Iterable[StreamRef]) -> Paused[dict[StreamRef, None]]:
        found: dict[StreamRef, None] = {}
        waiting = list(origins)
        paces = Paces()
        while waiting:
            for wake in self.wakes(waiting.pop()):
                if paces.pauses(1):
                    yield
                if wake.composite not in found:
                    found[wake.composite] = None
                    waiting.append(wake.composite)
        return found

    def regions(self) -> list[Region]:
        """All regions, those of lower levels first."""
        for each in list(self._streams.values()):
            self._cut(each)
        found = {each.region: None for each in self._streams.values() if each.region}
        return sorted(found, key=lambda each: each.level)

    def _cut(self, stream: KnownStream) -> None:
        """Cut the stream's component into regions, unless it is."""
        if self._copy(stream.ref) is None:
            finished(self._parts[stream.ref].cutting(self._shared))


class _Part:
    """Service Objects that are known together: they are cut into regions when it is needed."""

    def __init__(
        self, streams: dict[StreamRef, KnownStream], wakes: dict[StreamRef, list[Wake]]
    ) -> None:
        self._left: tuple[dict[StreamRef, KnownStream], dict[StreamRef, list[Wake]]] | None
        self._left = streams, wakes

    def cutting(self, shared: Shared) -> Paused[None]:
        """Cut it, unless it is."""
        if self._left is not None:
            streams, wakes = self._left
            composites = [each for each in streams.values() if each.composite is not None]
            yield from cutting(composites, streams, lambda ref: wakes.get(ref, ()), shared)
            self._left = None


def _known(stream: Stream, service_object: ServiceObject) -> KnownStream:
    number = service_object.stream_ids.get(stream.ref.stream, 0)
    owner = service_object.tenant, service_object.version
    name = "" if isinstance(stream.ref, WindowRef) else stream.ref.stream
    partitions = service_object.read_in.get(name, ())
    return KnownStream(stream.ref, *owner, number, stream.composite, read_in=partitions)


def _edges(service_object: ServiceObject) -> Paused[list[tuple[StreamRef, Wake]]]:
    """What this object subscribes to: by source in document order, then by stream.

    The same stream through two groups is two edges.
    """
    definition = service_object.definition
    found: list[tuple[StreamRef, Wake]] = []
    by_name: dict[str, list[tuple[StreamRef, Wake]]] = {}
    paces = Paces()
    for stream in chain.from_iterable(map(parts, definition.streams)):
        if paces.pauses(1):
            yield
        if stream.composite is None:
            continue
        if stream.composite.operator is not None:
            found.append((ClockRef(*stream.ref), Wake(stream.ref, CLOCK)))
        if stream.composite.follows:
            found.append((WindowRef(*stream.ref), Wake(stream.ref, FOLLOWS)))
        if stream.composite.windowed:  # through all of its inputs at once
            found.append((WindowRef(*stream.ref), Wake(stream.ref, 0)))
            continue
        for place, each in enumerate(stream.composite.inputs):
            if paces.pauses(len(each.members)):
                yield
            edges = by_name.setdefault(each.name, [])
            wake = Wake(stream.ref, place)
            edges += [(member, wake) for member in each.members if member != stream.ref]
    names = [stream.ref.stream for stream in definition.streams]
    for source in dict.fromkeys([*names, *(group.name for group in definition.groups)]):
        found += by_name.get(source, ())
    return found
