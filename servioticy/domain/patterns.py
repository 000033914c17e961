"""Components of one Service Object that are alike: cut once, and the same for all of them.

A fleet is a hundred thousand devices with the same document. What is found out of its streams,
regions, wakes and plans is by number in a *pattern*, which they share; what a device has of its
own is its streams, with their names and numbers, and its regions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from sandbox import trees
from servioticy.domain.known_streams import Entry, KnownStream, Region, Wake
from servioticy.domain.model import Definition, ServiceObject, StreamRef
from servioticy.domain.pauses import Paused
from servioticy.domain.plans import Needs, Plan, plan_of
from servioticy.domain.scripts import is_anybodys, program_name

MAX_PLANNED = 50
"""Numbers of streams in plans, for each stream of a pattern: the plans of a long chain are as
many as its square."""

NeedsOf: TypeAlias = Callable[[Region, int], Paused[Needs]]


class _Stream(NamedTuple):
    """A stream, with numbers for regions and streams."""

    settles: bool
    region: int | None
    crosses: tuple[tuple[int, int], ...]
    entries: tuple[tuple[int, int], ...]
    wakes: tuple[tuple[int, int], ...]
    """The composite, and through which input."""


class _Planned(NamedTuple):
    """A plan, with the numbers of its streams."""

    streams: tuple[int, ...]
    parts: int
    least: int


class _Region(NamedTuple):
    """A region, with the numbers of its streams."""

    level: int
    evaluator: str | None
    streams: tuple[int, ...]
    composites: int
    """So many of them are, the first ones."""
    wiring: trees.Wiring
    leads_on: bool


class Pattern:
    """What the graphs of these components have in common."""

    __slots__ = (
        "__weakref__",
        "_plans",
        "definition",
        "numbers",
        "regions",
        "remembered",
        "streams",
    )

    def __init__(
        self,
        definition: Definition,
        streams: Sequence[KnownStream],
        wakes: Callable[[StreamRef], Sequence[Wake]],
    ) -> None:
        """Take it from one of them that is cut. `definition` is what all of theirs are like."""
        self.definition = definition
        self.numbers = {each.ref.stream: number for number, each in enumerate(streams)}
        self._plans: dict[int, _Planned] = {}
        self.remembered = 0
        """Numbers of streams in the plans that are kept."""
        number_of = {each: number for number, each in enumerate(streams)}
        regions = {each.region: None for each in streams if each.region is not None}
        places = {each: place for place, each in enumerate(regions)}

        def placed(entries: Sequence[Entry]) -> tuple[tuple[int, int], ...]:
            return tuple([(places[region], node) for region, node in entries])

        def woken(stream: KnownStream) -> tuple[tuple[int, int], ...]:
            found = wakes(stream.ref)
            return tuple([(self.numbers[each.composite.stream], each.input) for each in found])

        self.regions = tuple(
            [
                _Region(
                    each.level,
                    each.evaluator,
                    tuple([number_of[each.stream(n)] for n in range(len(each.streams))]),
                    len([name for name in each.names if name]),
                    each.wiring,
                    each.leads_on,
                )
                for each in regions
            ]
        )
        self.streams = tuple(
            [
                _Stream(
                    each.settles,
                    None if each.region is None else places[each.region],
                    placed(each.crosses),
                    placed(each.entries),
                    woken(each),
                )
                for each in streams
            ]
        )

    def planning(
        self, number: int, streams: Sequence[KnownStream], needs: NeedsOf
    ) -> Paused[Plan]:
        """The plan of the stream with this number of those of a copy; kept while there is room."""
        found = self._plans.get(number)
        if found is None:
            plan = yield from plan_of(streams[number], needs)
            planned = tuple([self.numbers[each.ref.stream] for each in plan.streams])
            found = _Planned(planned, plan.parts, plan.least)
            self.remembered += len(found.streams)
            if self.remembered > MAX_PLANNED * len(streams):
                self._plans, self.remembered = {}, len(found.streams)
            self._plans[number] = found
        needed = tuple([streams[each] for each in found.streams])
        return Plan(streams[number].entries, needed, (), found.parts, found.least)

    def copy(self, service_object: ServiceObject) -> Copy:
        """The component of another Service Object whose definition is like that one."""
        tenant, version = service_object.tenant, service_object.version
        ids, read_in = service_object.stream_ids, service_object.read_in
        definition = service_object.definition
        streams = [
            KnownStream(
                each.ref,
                tenant,
                version,
                ids.get(each.ref.stream, 0),
                each.composite,
                read_in.get(each.ref.stream, ()),
            )
            for each in definition.streams
        ]
        regions = [
            Region(
                like.level,
                tenant,
                like.evaluator,
                tuple([streams[number] for number in like.streams]),
                tuple(
                    [
                        program_name(streams[number].ref, version)
                        if place < like.composites
                        else ""
                        for place, number in enumerate(like.streams)
                    ]
                ),
                like.wiring,
                like.leads_on,
            )
            for like in self.regions
        ]
        for stream, of_it in zip(streams, self.streams, strict=True):
            stream.settles = of_it.settles
            if of_it.region is not None:
                stream.region = regions[of_it.region]
            if of_it.crosses:
                stream.crosses = tuple([(regions[place], node) for place, node in of_it.crosses])
            if of_it.entries:
                stream.entries = tuple([(regions[place], node) for place, node in of_it.entries])
        return Copy(self, tuple(streams))


class Copy:
    """The component of one Service Object."""

    __slots__ = ("pattern", "streams")

    def __init__(self, pattern: Pattern, streams: tuple[KnownStream, ...]) -> None:
        self.pattern = pattern
        self.streams = streams

    def stream(self, name: str) -> KnownStream | None:
        """Its stream of this name."""
        number = self.pattern.numbers.get(name)
        return None if number is None else self.streams[number]

    def wakes(self, name: str) -> Sequence[Wake]:
        """Whom an update of the stream of this name wakes, in order."""
        number = self.pattern.numbers.get(name)
        found = () if number is None else self.pattern.streams[number].wakes
        return [Wake(self.streams[composite].ref, through) for composite, through in found]

    def planning(self, name: str, needs: NeedsOf) -> Paused[Plan]:
        """The plan of the stream of this name."""
        return self.pattern.planning(self.pattern.numbers[name], self.streams, needs)


def is_alone(service_object: ServiceObject) -> bool:
    """Whether it reads nothing but its own streams, as far as its definition tells."""
    return not service_object.definition.groups and not service_object.inputs


def can_be_shared(regions: Sequence[Region]) -> bool:
    """Whether nothing in these depends on whose they are, and all their streams are known."""
    return all(
        stream is not None
        and not node.name
        and not node.keeps  # it has a clock, which is a stream without a name of its own
        and (node.code is None or is_anybodys(node.code))
        for region in regions
        for stream, node in zip(region.streams, region.wiring.nodes, strict=True)
    )
