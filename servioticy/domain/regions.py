"""Cuts the composites of a component into regions, each evaluated as a whole.

A region is made of composites of one tenant and one evaluator that hang together. What
another one makes comes into it as an event, so regions must not read each other in a circle:
each composite has a *level*, the largest number of borders on any path to it, and a region
is of one level. A border is an edge to another tenant, to another evaluator, or into a
composite that settles: all that arrives there has to be known before it computes.

Composites that wake each other in a circle are of one region. Where they are of several
tenants or evaluators, the region is a *knot*, to be taken step by step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from sandbox import trees
from servioticy.domain.known_streams import Entry, KnownStream, Wake
from servioticy.domain.model import StreamRef
from servioticy.domain.scripts import program, program_name
from servioticy.domain.strong_components import strongly_connected_components

Wakes = Callable[[StreamRef], Sequence[Wake]]

Woken = Mapping[StreamRef, Sequence[tuple[int, Wake]]]
"""Whom streams wake in a region, with the numbers among all whom they wake."""


@dataclass(slots=True, eq=False)
class Region:
    """Composites that are evaluated together, and the streams that they read."""

    level: int
    """Regions read only regions of lower levels."""
    tenant: int | None
    evaluator: str | None
    """None in a knot, as the tenant is: each composite has its own."""
    streams: tuple[KnownStream | None, ...]
    """By number. None: nobody knows the stream, so it has no updates."""
    names: tuple[str, ...]
    """Of each composite's code, by number."""
    wiring: trees.Wiring
    tenants: frozenset[int]
    """Whose composites they are."""
    leads_on: bool = False
    """Whether other regions read what it makes."""

    def stream(self, number: int) -> KnownStream:
        """The stream of this number, which is one that has updates."""
        stream = self.streams[number]
        if stream is None:
            raise KeyError(number)
        return stream

    def composites(self) -> Iterable[tuple[int, KnownStream]]:
        """Its composites, with their numbers."""
        for number, (stream, node) in enumerate(zip(self.streams, self.wiring.nodes, strict=True)):
            if stream is not None and node.code is not None:
                yield number, stream


class _Class(NamedTuple):
    """Composites of a region are alike in this."""

    tenant: int | None
    evaluator: str | None
    level: int
    knot: int | None
    """The number of the circle, where it is one."""


def cut(
    composites: Sequence[KnownStream],
    known: Mapping[StreamRef, KnownStream],
    wakes: Wakes,
    wirings: dict[str, trees.Wiring],
) -> None:
    """Cut a whole component: note at each stream which regions its updates enter.

    `composites` are all of it, in an order that equal devices have in common. `wirings` are
    those that are known by id: equal ones are the same.
    """
    classes = _classes(composites, known, wakes)
    crosses: defaultdict[KnownStream, list[Entry]] = defaultdict(list)
    connected = _connected(composites, classes)
    for members, woken in zip(connected, _woken(connected, wakes), strict=True):
        found = classes[members[0]]
        region = region_of(members, known, woken, found.level, wirings)
        for number, stream in enumerate(region.streams):
            if stream is not None and region.wiring.nodes[number].code is None:
                crosses[stream].append((region, number))
        for number, stream in region.composites():
            stream.region = region
            stream.entries = ((region, number),)
    for stream, entries in crosses.items():
        stream.crosses = tuple(entries)
        stream.entries += stream.crosses
        if stream.region is not None:
            stream.region.leads_on = True


def whole(
    members: Sequence[KnownStream], known: Mapping[StreamRef, KnownStream], wakes: Wakes
) -> Region:
    """These composites as one region."""
    (woken,) = _woken([members], wakes)
    return region_of(members, known, woken, 0, {})


def _woken(connected: Sequence[Sequence[KnownStream]], wakes: Wakes) -> list[Woken]:
    """Whom streams wake in each region.

    It is found for all regions at once: a stream may wake composites of thousands.
    """
    places = {each.ref: place for place, some in enumerate(connected) for each in some}
    sources = {
        member
        for some in connected
        for each in some
        for read in (each.composite.inputs if each.composite else ())
        for member in read.members
    }
    found: list[dict[StreamRef, list[tuple[int, Wake]]]] = [{} for _ in connected]
    for ref in sources:
        for number, wake in enumerate(wakes(ref)):
            place = places.get(wake.composite)
            if place is not None:
                found[place].setdefault(ref, []).append((number, wake))
    return list(found)


def region_of(
    members: Sequence[KnownStream],
    known: Mapping[StreamRef, KnownStream],
    woken: Woken,
    level: int,
    wirings: dict[str, trees.Wiring],
) -> Region:
    """The region of these composites; a knot where they are not all alike."""
    inside = {each.ref: number for number, each in enumerate(members)}
    numbers = dict(inside)
    for each in members:
        for read in each.composite.inputs if each.composite else ():
            for member in read.members:
                numbers.setdefault(member, len(numbers))
    named = _named(members)
    nodes = []
    for ref in numbers:
        following = tuple(
            trees.Wake(number, inside[wake.composite], wake.input)
            for number, wake in woken.get(ref, ())
        )
        name = str(ref) if ref in named else ""
        stream = known[ref] if ref in inside else None
        nodes.append(_node(stream, following, name, numbers))
    found = wiring(tuple(nodes))
    found = wirings.setdefault(found.id, found)
    kinds = {_kind(each) for each in members}
    tenant, evaluator = kinds.pop() if len(kinds) == 1 else (None, None)
    names = tuple(program_name(each.ref, each.version) for each in members)
    nameless = ("",) * (len(numbers) - len(members))
    streams = tuple(known.get(ref) for ref in numbers)
    owners = frozenset(each.tenant for each in members)
    return Region(level, tenant, evaluator, streams, names + nameless, found, owners)


def wiring(nodes: tuple[trees.Node, ...]) -> trees.Wiring:
    """These nodes with an id that equal nodes have, too."""
    content = [
        (
            each.code and each.code.id,
            [tuple(wake) for wake in each.wakes],
            each.inputs,
            each.own,
            each.settles,
            each.by_input,
            each.skips,
            each.name,
        )
        for each in nodes
    ]
    text = repr(content).encode("utf-8", "surrogatepass")
    return trees.Wiring(sha256(text).hexdigest(), nodes)


def _named(members: Iterable[KnownStream]) -> set[StreamRef]:
    """The streams that composites with `staleness: "input"` read: their states name them."""
    return {
        member
        for each in members
        if each.composite is not None and each.composite.options.staleness == "input"
        for number, read in enumerate(each.composite.inputs)
        if number != each.composite.own
        for member in read.members
    }


def _node(
    stream: KnownStream | None,
    woken: tuple[trees.Wake, ...],
    name: str,
    numbers: Mapping[StreamRef, int],
) -> trees.Node:
    """The node of a composite of the region; with None of a stream that is only read there."""
    if stream is None or stream.composite is None:
        return trees.Node(woken, name=name)
    composite = stream.composite
    return trees.Node(
        woken,
        program(stream.ref, stream.version, composite),
        tuple(tuple(numbers[member] for member in each.members) for each in composite.inputs),
        composite.own,
        stream.settles,
        composite.options.staleness == "input",
        composite.options.missing == "skip",
        name,
    )


def _kind(stream: KnownStream) -> tuple[int, str]:
    return stream.tenant, stream.composite.evaluator if stream.composite else ""


def _classes(
    composites: Sequence[KnownStream], known: Mapping[StreamRef, KnownStream], wakes: Wakes
) -> dict[KnownStream, _Class]:
    """The class of each composite; notes at each whether it settles."""
    following = {each: [known[wake.composite] for wake in wakes(each.ref)] for each in composites}
    circles = strongly_connected_components(following)
    number_of = {each: number for number, circle in enumerate(circles) for each in circle}
    knots = {number for number, circle in enumerate(circles) if len(set(map(_kind, circle))) > 1}
    for each in composites:
        settles = each.composite is not None and each.composite.options.diamonds == "settle"
        each.settles = settles and len(circles[number_of[each]]) == 1
    levels = [0] * len(circles)
    # What a component leads to stands before it in the list.
    for number in reversed(range(len(circles))):
        for source in circles[number]:
            for target in following[source]:
                other = number_of[target]
                if other != number:
                    border = (
                        target.settles
                        or number in knots
                        or other in knots
                        or _kind(source) != _kind(target)
                    )
                    levels[other] = max(levels[other], levels[number] + border)
    return {each: _class(each, number_of[each], levels, knots) for each in composites}


def _class(stream: KnownStream, circle: int, levels: Sequence[int], knots: set[int]) -> _Class:
    if circle in knots:
        return _Class(None, None, levels[circle], circle)
    return _Class(*_kind(stream), levels[circle], None)


def _connected(
    composites: Sequence[KnownStream], classes: Mapping[KnownStream, _Class]
) -> list[list[KnownStream]]:
    """The composites of each region: of one class, and with a stream in common.

    That is one that both read, or one that the other reads.
    """
    parents: dict[Hashable, Hashable] = {}

    def root(key: Hashable) -> Hashable:
        parents.setdefault(key, key)
        while parents[key] != key:
            parents[key] = key = parents[parents[key]]
        return key

    for each in composites:
        own = root((each.ref, classes[each]))
        for read in each.composite.inputs if each.composite else ():
            for member in read.members:
                parents[root((member, classes[each]))] = own
    found: defaultdict[Hashable, list[KnownStream]] = defaultdict(list)
    for each in composites:
        found[root((each.ref, classes[each]))].append(each)
    return list(found.values())
