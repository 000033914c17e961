"""Cuts a component into regions: which composites are of which, and what enters them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from servioticy.domain.known_streams import Entry, KnownStream
from servioticy.domain.model import StreamRef
from servioticy.domain.pauses import PAUSE, Paused
from servioticy.domain.regions import Shared, Wakes, evaluator_of, find_woken, main_of, region_of
from servioticy.domain.strong_components import searching


class _Class(NamedTuple):
    """Composites of a region are alike in this."""

    evaluator: str | None
    level: int
    knot: int | None
    """The number of the circle, where it is one."""


def cutting(
    composites: Sequence[KnownStream],
    known: Mapping[StreamRef, KnownStream],
    wakes: Wakes,
    shared: Shared,
) -> Paused[None]:
    """Cut a whole component: note at each stream which regions its updates enter.

    `composites` are all of it, in an order that equal devices have in common. It takes time
    linear in streams and edges; nothing is noted that does not hold, should it never end.
    """
    classes = yield from _classes(composites, known, wakes)
    crosses: defaultdict[KnownStream, list[Entry]] = defaultdict(list)
    connected = yield from _connected(composites, classes)
    woken = yield from find_woken(connected, wakes)
    for number, (members, theirs) in enumerate(zip(connected, woken, strict=True)):
        if not number % PAUSE:
            yield
        level = classes[members[0]].level
        region = yield from region_of(members, known.get, theirs, level, shared)
        for entry, stream in enumerate(region.streams[len(members) :], len(members)):
            if stream is not None:
                crosses[stream].append((region, entry))
        for entry, stream in enumerate(members):
            if not entry % PAUSE:
                yield
            stream.region = region
            stream.entries = ((region, entry),)
    for stream, entries in crosses.items():
        stream.crosses = tuple(entries)
        own = () if stream.region is None else stream.entries
        stream.entries = own + stream.crosses
        if stream.region is not None:
            stream.region.leads_on = True


def _classes(
    composites: Sequence[KnownStream], known: Mapping[StreamRef, KnownStream], wakes: Wakes
) -> Paused[dict[KnownStream, _Class]]:
    """The class of each composite; notes at each whether it settles."""
    following: dict[KnownStream, list[KnownStream]] = {}
    for number, each in enumerate(composites):
        if not number % PAUSE:
            yield
        following[each] = [known[wake.composite] for wake in wakes(each.ref)]
        main = main_of(each)
        if main is not None and main in known:  # they are of one region, whatever lies between
            following[each].append(known[main])
    circles: list[list[KnownStream]] = []
    number_of: dict[KnownStream, int] = {}
    knots: set[int] = set()
    for circle in searching(following):
        if not circle:
            yield
            continue
        if len(circle) > 1 and len(set(map(evaluator_of, circle))) > 1:
            knots.add(len(circles))
        number_of.update(dict.fromkeys(circle, len(circles)))
        circles.append(circle)
    for number, each in enumerate(composites):
        if not number % PAUSE:
            yield
        settles = each.composite is not None and each.composite.options.diamonds == "settle"
        each.settles = settles and len(circles[number_of[each]]) == 1
    levels = [0] * len(circles)
    # What a circle leads to stands before it in the list.
    for number in reversed(range(len(circles))):
        if not number % PAUSE:
            yield
        for source in circles[number]:
            for target in following[source]:
                other = number_of[target]
                if other != number:
                    seam = (
                        target.settles
                        or number in knots
                        or other in knots
                        or evaluator_of(source) != evaluator_of(target)
                    )
                    levels[other] = max(levels[other], levels[number] + seam)
    found: dict[KnownStream, _Class] = {}
    for number, each in enumerate(composites):
        if not number % PAUSE:
            yield
        found[each] = _class(each, number_of[each], levels, knots)
    return found


def _class(stream: KnownStream, circle: int, levels: Sequence[int], knots: set[int]) -> _Class:
    if circle in knots:
        return _Class(None, levels[circle], circle)
    return _Class(evaluator_of(stream), levels[circle], None)


def _connected(
    composites: Sequence[KnownStream], classes: Mapping[KnownStream, _Class]
) -> Paused[list[list[KnownStream]]]:
    """The composites of each region: of one class, and with a stream in common.

    That is one that both read, or one that the other reads.
    """
    parents: dict[Hashable, Hashable] = {}

    def root(key: Hashable) -> Hashable:
        parents.setdefault(key, key)
        while parents[key] != key:
            parents[key] = key = parents[parents[key]]
        return key

    for number, each in enumerate(composites):
        if not number % PAUSE:
            yield
        own = root((each.ref, classes[each]))
        for read in each.composite.inputs if each.composite else ():
            for member in read.members:
                # So what all of them read stays the root.
                parents[own] = own = root((member, classes[each]))
    found: defaultdict[Hashable, list[KnownStream]] = defaultdict(list)
    for number, each in enumerate(composites):
        if not number % PAUSE:
            yield
        found[root((each.ref, classes[each]))].append(each)
    return list(found.values())
