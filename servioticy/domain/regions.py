"""Regions: composites of a component that are evaluated together, and how they are wired.

A component is of one tenant. A region is made of composites of one evaluator that hang
together. What another one makes comes into it as an event, so regions must not read each other
in a circle: each composite has a *level*, the largest number of seams on any path to it, and a
region is of one level. A seam is an edge to another evaluator, or into a composite that settles:
all that arrives there has to be known before it computes.

Composites that wake each other in a circle are of one region. Where they are of several
evaluators, the region is a *knot*, to be taken step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

from sandbox import trees
from servioticy.domain.known_streams import KnownStream, Region, Wake
from servioticy.domain.model import ClockRef, StreamRef, WindowRef
from servioticy.domain.operator_code import code_of
from servioticy.domain.pauses import PAUSE, Paces, Paused
from servioticy.domain.program_code import PROGRAMS, SideCode
from servioticy.domain.scripts import Programs, program_name
from servioticy.domain.windowed import FOLLOWING, WINDOWS
from servioticy.domain.wirings import made_wiring

Wakes = Callable[[StreamRef], Sequence[Wake]]
Known = Callable[[StreamRef], KnownStream | None]

Woken = Mapping[StreamRef, Sequence[tuple[int, Wake]]]
"""Whom streams wake in a region, with the numbers among all whom they wake."""


class Shared:
    """What equal regions have in common, as long as one of them has it."""

    def __init__(self) -> None:
        self.programs = Programs()
        self._wirings: WeakValueDictionary[str, trees.Wiring] = WeakValueDictionary()

    def wiring(self, found: trees.Wiring) -> trees.Wiring:
        """This wiring, or an equal one that is known."""
        return self._wirings.setdefault(found.id, found)


def whole(members: Sequence[KnownStream], known: Known, wakes: Wakes) -> Paused[Region]:
    """These composites as one region."""
    (woken,) = yield from find_woken([members], wakes)
    return (yield from region_of(members, known, woken, 0, Shared()))


def find_woken(connected: Sequence[Sequence[KnownStream]], wakes: Wakes) -> Paused[list[Woken]]:
    """Whom streams wake in each region.

    It is found for all regions at once: a stream may wake composites of thousands.
    """
    places: dict[StreamRef, int] = {}
    sources: dict[StreamRef, None] = {}
    for place, some in enumerate(connected):
        for number, each in enumerate(some):
            places[each.ref] = place
            for read in each.composite.inputs if each.composite else ():
                sources.update(dict.fromkeys(read.members))
            if has_clock(each):
                sources[ClockRef(*each.ref)] = None
            if each.composite is not None and each.composite.follows:
                sources[WindowRef(*each.ref)] = None
            if not number % PAUSE:
                yield
    found: list[dict[StreamRef, list[tuple[int, Wake]]]] = [{} for _ in connected]
    paces = Paces()
    for count, ref in enumerate(sources):
        if not count % PAUSE:
            yield
        for number, wake in enumerate(wakes(ref)):
            if paces.pauses(1):
                yield
            reader = places.get(wake.composite)
            if reader is not None:
                found[reader].setdefault(ref, []).append((number, wake))
    return list(found)


def region_of(
    members: Sequence[KnownStream],
    known: Known,
    woken: Woken,
    level: int,
    shared: Shared,
) -> Paused[Region]:
    """The region of these composites; a knot where they are not all alike."""
    paces = Paces()
    inside = {each.ref: number for number, each in enumerate(members)}
    yield
    numbers = dict(inside)
    for count, each in enumerate(members):
        if not count % PAUSE:
            yield
        for read in each.composite.inputs if each.composite else ():
            for member in read.members:
                numbers.setdefault(member, len(numbers))
        if has_clock(each):
            numbers.setdefault(ClockRef(*each.ref), len(numbers))
        if each.composite is not None and each.composite.follows:
            numbers.setdefault(WindowRef(*each.ref), len(numbers))
    named = yield from _named(members)
    sides = yield from _sides(members)
    nodes: list[trees.Node] = []
    streams: list[KnownStream | None] = []
    for number, ref in enumerate(numbers):
        if not number % PAUSE:
            yield
        woken_here: list[trees.Wake] = []
        for step, wake in woken.get(ref, ()):
            if paces.pauses(1):
                yield
            woken_here.append(trees.Wake(step, inside[wake.composite], wake.input))
        following = tuple(woken_here)
        name = str(ref) if ref in named else ""
        stream = members[number] if number < len(members) else None
        brings = any(wake.argument == trees.FOLLOWS for wake in following)
        node = _node(stream, following, name, numbers, shared.programs, brings=brings)
        if ref in sides:
            node = replace(node, sides=tuple(sides[ref]))
        if stream is not None and evaluator_of(stream) == WINDOWS:
            node = replace(node, read_as=_read_as(stream, known))
        nodes.append(node)
        streams.append(stream or known(ref))
    found = shared.wiring((yield from made_wiring(tuple(nodes))))
    evaluators: set[str] = set()
    names: list[str] = []
    for number, each in enumerate(members):
        if not number % PAUSE:
            yield
        evaluators.add(evaluator_of(each))
        names.append(program_name(each.ref, each.version))
    names += [""] * (len(numbers) - len(members))
    evaluator = evaluators.pop() if len(evaluators) == 1 else None
    tenant, keeps = members[0].tenant, any(map(has_clock, members))
    return Region(level, tenant, evaluator, tuple(streams), tuple(names), found, keeps=keeps)


def _named(members: Iterable[KnownStream]) -> Paused[set[StreamRef]]:
    """The streams that composites name in what they keep: `staleness: "input"`, windows, and what
    waits for programs."""
    found: set[StreamRef] = set()
    paces = Paces()
    for each in members:
        if paces.pauses(1):
            yield
        if each.composite is not None and (
            each.composite.options.staleness == "input"
            or each.feeds is not None
            or each.composite.evaluator == PROGRAMS
        ):
            for number, read in enumerate(each.composite.inputs):
                if number != each.composite.own:
                    if paces.pauses(len(read.members)):
                        yield
                    found.update(read.members)
    return found


def _read_as(stream: KnownStream, known: Known) -> int:
    """The newest number under which updates are stored of what a composite reads."""
    read = stream.composite.inputs if stream.composite else ()
    found = [known(member) for each in read for member in each.members]
    return max([each.stream_id for each in found if each is not None], default=0)


def _sides(members: Iterable[KnownStream]) -> Paused[dict[StreamRef, list[int]]]:
    """Of streams whose programs make updates of others, these, by their numbers."""
    found: dict[StreamRef, list[int]] = {}
    paces = Paces()
    for number, each in enumerate(members):
        if paces.pauses(1):
            yield
        main = main_of(each)
        if main is not None:
            found.setdefault(main, []).append(number)
    return found


def main_of(stream: KnownStream) -> StreamRef | None:
    """The stream whose program makes this one's updates, if another one's does."""
    code = None if stream.composite is None else stream.composite.operator
    return StreamRef(stream.ref.service_object, code.of) if isinstance(code, SideCode) else None


def _node(
    stream: KnownStream | None,
    woken: tuple[trees.Wake, ...],
    name: str,
    numbers: Mapping[StreamRef, int],
    programs: Programs,
    *,
    brings: bool,
) -> trees.Node:
    """The node of a composite of the region; with None of a stream that is only read there."""
    if stream is None or stream.composite is None:
        return trees.Node(woken, name=name, brings=brings)
    composite = stream.composite
    keeps = has_clock(stream)
    return trees.Node(
        woken,
        code_of(composite) if keeps else programs.of(stream.ref, stream.version, composite),
        tuple([tuple([numbers[member] for member in each.members]) for each in composite.inputs]),
        composite.own,
        stream.settles,
        composite.options.staleness == "input",
        composite.options.missing == "skip",
        name,
        keeps,
        composite.windowed,
        stream.feeds is None or composite.looks_at_others,
        stream.feeds is not None,
        composite.evaluator == FOLLOWING,
        brings,
    )


def has_clock(stream: KnownStream) -> bool:
    """Whether an operator computes it, which may set itself times."""
    return stream.composite is not None and stream.composite.operator is not None


def evaluator_of(stream: KnownStream) -> str:
    """The evaluator of a composite."""
    return stream.composite.evaluator if stream.composite else ""
