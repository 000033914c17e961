"""Stage 2: give every region the last updates that its trees can read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

from pipeline.growth import Asked, Entering, Keeping
from pipeline.sharing.rules import Rules
from pipeline.work import LoggedUpdate
from sandbox.trees import Bounds, Call, Kept, Last
from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import Region
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.timing import newest

_last = cast(Callable[..., Last], tuple.__new__)
"""A third of what it takes to call the class."""

LastUpdates = Mapping[StreamRef, LastUpdate | None]


def fetch(
    entering: Sequence[Entering],
    updates: Sequence[LoggedUpdate],
    graph: Graph,
    last_updates: LastUpdates,
    rules: Rules,
    keeping: Keeping = MappingProxyType({}),
) -> list[Asked]:
    """What each region's evaluator is asked: trees, last updates, what is kept, and bounds.

    `last_updates` are those before the batch: what changes them meanwhile is in the trees.
    """
    asked = []
    for region, numbers, trees in entering:
        entries = {event.node for tree in trees for event in tree}
        lasts = _lasts(region, entries, graph, last_updates)
        computations, most_bytes = _most([updates[n] for n in numbers], graph, rules)
        bounds = Bounds(rules.limits.hops, computations)
        kept = _kept(region, keeping) if keeping else ()
        at: Sequence[int] = ()
        traces: Sequence[str] = ()
        if region.keeps:
            at = [updates[number].at for number in numbers]
            traces = [updates[number].trace for number in numbers]
        call = Call(
            region.wiring,
            region.names,
            lasts,
            trees,
            bounds,
            kept=kept,
            at=at,
            traces=traces if any(traces) else (),
        )
        asked.append(Asked(region, numbers, call, most_bytes))
    return asked


def _lasts(
    region: Region, entries: Iterable[int], graph: Graph, last_updates: LastUpdates
) -> list[Last]:
    """The last updates of what updates of these streams can lead to a look at."""
    needed: dict[int, bool] = {}
    groups: dict[int, tuple[int, ...]] = {}
    for entry in entries:
        needs = graph.needs(region, entry)
        if not needed:
            needed.update(needs.lasts)
        else:
            for number, document in needs.lasts:
                needed[number] = document or needed.get(number, False)
        for members in needs.groups:
            groups[id(members)] = members
    for members in groups.values():
        best = _newest(region, members, last_updates)
        if best is not None:
            needed[best] = True
    lasts: list[Last] = []
    streams = region.streams
    for number, reads in needed.items():
        stream = streams[number]
        last = None if stream is None else last_updates.get(stream.ref)
        if last is not None:
            timestamp, text, state = last
            lasts.append(_last(Last, (number, timestamp, text if reads else None, state)))
    return lasts


def _kept(region: Region, keeping: Keeping) -> list[Kept]:
    """What the region's composites keep, as far as it is known."""
    return [
        Kept(number, key, *(stored or (None, None)))
        for number, stream in enumerate(region.streams)
        if stream is not None and stream in keeping
        for key, stored in keeping[stream].items()
    ]


def _newest(region: Region, members: Sequence[int], last_updates: LastUpdates) -> int | None:
    """The member that is the group's value: what others have counts once they have a new one."""
    numbers = {
        stream.ref: number for number in members if (stream := region.streams[number]) is not None
    }
    best = newest((ref, last_updates.get(ref)) for ref in numbers)
    return None if best is None else numbers[best[0]]


def _most(updates: Sequence[LoggedUpdate], graph: Graph, rules: Rules) -> tuple[int, int]:
    """How many computations, and bytes of outputs, a tree may have in a region.

    A tree that has several regions has a part of its tenant's limits in each: where it keeps to
    that, it keeps to the limits. One that does not is computed alone.
    """
    roots = {tuple([root.origin for root in each.roots]) for each in updates}
    parts = max(sum(graph.plan(graph.stream(ref)).parts for ref in refs) for refs in roots)
    return rules.limits.computations // parts, rules.limits.tree_bytes // parts
