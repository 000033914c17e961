"""The digraph of subscriptions: which composites an update wakes, directly or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias
from weakref import WeakValueDictionary

from servioticy.domain.borders import kept, outside_inputs
from servioticy.domain.known_streams import Entry, KnownStream, Region, Wake
from servioticy.domain.members import Known, Part, edges_of, owner_of, take_in_stream
from servioticy.domain.model import (
    Composite,
    InputRef,
    ServiceObject,
    StreamRef,
)
from servioticy.domain.patterns import Copy, Pattern, can_be_shared, is_alone
from servioticy.domain.pauses import PAUSE, Paces, Paused, finished
from servioticy.domain.plans import Needs, Plan, needs_of, plan_of
from servioticy.domain.regions import Shared, whole
from servioticy.domain.remembered import Remembered

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
        self._known: dict[str | int, Known] = {}
        """By the Service Object; of what one reads of other tenants by its sequence."""
        self._readers: dict[str, int] = {}
        """The sequences of those that do."""
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
        for part in dict.fromkeys([each.part for each in made._known.values()]):
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
        part = Part()
        streams, wakes = part.streams, part.wakes
        subscribers: dict[StreamRef, list[Wake]] = {}
        paces, edges = Paces(PAUSE), Paces()
        for each in sorted(service_objects, key=lambda each: each.sequence):
            for stream in each.definition.streams:
                if paces.pauses(1):
                    yield
                take_in_stream(stream, each, streams)
            yield from self._take_in_inputs(each, streams)
            for ref, wake in (yield from edges_of(each)):
                if edges.pauses(1):
                    yield
                own = ref.service_object == each.id
                (wakes if own else subscribers).setdefault(ref, []).append(wake)
        for number, (ref, some) in enumerate(subscribers.items()):
            if not number % PAUSE:
                yield
            wakes.setdefault(ref, []).extend(some)
        for number, ref in enumerate((*streams, *wakes)):
            if not number % PAUSE:
                yield
            owner = owner_of(ref)
            known = self._known.get(owner)
            if known is None:
                known = self._known[owner] = Known(part)
            known.take(ref, streams.get(ref), wakes.get(ref))

    def _take_in_inputs(
        self, service_object: ServiceObject, streams: dict[StreamRef, KnownStream]
    ) -> Paused[None]:
        """What it reads of other tenants goes with it: nobody else reads that."""
        keeps = None
        for number, (ref, provider) in enumerate(outside_inputs(service_object), 1):
            if not number % PAUSE:
                yield
            if ref in streams:
                continue
            if keeps is None:
                keeps = frozenset(kept(service_object.definition))
            keeper = (service_object.tenant, service_object.id) if ref in keeps else None
            streams[ref] = KnownStream(ref, provider, 0, 0, None, keeper=keeper)
            self._readers[service_object.id] = ref.reader

    def merge(self, other: Graph) -> None:
        """Take in the streams of other Service Objects, which subscribe to none of these."""
        for owner, known in other._known.items():
            before = self._known.get(owner)
            self._known[owner] = known if before is None else before.with_(known)
        self._readers.update(other._readers)

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
            for owner in (service_object, self._readers.pop(service_object, None)):
                gone = None if owner is None else self._known.pop(owner, None)
                if gone is not None:
                    self._plans.drop(gone.streams.keys())
                    self._wholes.drop(gone.streams.keys())
                    inputs += [each for each in gone.streams if isinstance(each, InputRef)]
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
        if copy is not None:
            return copy.stream(ref.stream)
        known = self._known.get(owner_of(ref))
        return None if known is None else known.streams.get(ref)

    def _copy(self, ref: StreamRef) -> Copy | None:
        """The component that the stream is of, if it is like others."""
        return None if isinstance(ref, InputRef) else self._copies.get(ref.service_object)

    def wakes(self, origin: StreamRef) -> Sequence[Wake]:
        """The composites that an update of this stream wakes, in order; never itself."""
        copy = self._copy(origin)
        if copy is not None:
            return copy.wakes(origin.stream)
        known = self._known.get(owner_of(origin))
        return () if known is None else known.wakes.get(origin, ())

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
        return finished(self._needing(region, node))

    def _needing(self, region: Region, node: int) -> Paused[Needs]:
        key = region.wiring.id, node
        needs = self._needs.get(key)
        if needs is None:
            needs = yield from needs_of(region.wiring, node)
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
        streams = [each for known in self._known.values() for each in known.streams.values()]
        for each in streams:
            self._cut(each)
        found = {each.region: None for each in streams if each.region}
        return sorted(found, key=lambda each: each.level)

    def _cut(self, stream: KnownStream) -> None:
        """Cut the stream's component into regions, unless it is."""
        if self._copy(stream.ref) is None:
            finished(self._known[owner_of(stream.ref)].part.cutting(self._shared))
