"""What an update of a stream enters, and which last updates its tree can read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sandbox.trees import Node, Wiring
from servioticy.domain.known_streams import Entry, KnownStream, Region
from servioticy.domain.pauses import PACES, Paused
from servioticy.domain.scripts import reads_own


class Needs(NamedTuple):
    """What has to be known of a region where an update enters it; streams are its numbers."""

    reached: tuple[int, ...]
    """The composites that can compute."""
    lasts: tuple[tuple[int, bool], ...]
    """Streams whose last updates are needed, and whether the documents are."""
    groups: tuple[tuple[int, ...], ...]
    """Groups of which the newest member's last update is needed."""


class Plan(NamedTuple):
    """What the tree of one stream's update can come to."""

    entries: tuple[Entry, ...]
    """The regions that the update itself enters."""
    streams: tuple[KnownStream, ...]
    """Whose last updates are needed, its own among them."""
    groups: tuple[tuple[Region, tuple[int, ...]], ...]
    """And the groups of which the newest member's is."""
    parts: int
    """How many regions there are in the tree, one at least."""
    least: int = 0
    """Computations that the tree has in any case, whatever comes of them."""


def needs_of(wiring: Wiring, entry: int) -> Paused[Needs]:
    """What has to be known where an update of this stream enters a region of this wiring.

    An input is the trigger itself where that comes through it: so the only input of a composite
    is never read otherwise.
    """
    nodes = wiring.nodes
    reached: dict[int, None] = {}
    waiting = deque([entry])
    count = 0
    while waiting:
        for wake in nodes[waiting.popleft()].wakes:
            count += 1
            if not count % PACES:
                yield
            if wake.node not in reached:
                reached[wake.node] = None
                waiting.append(wake.node)
    lasts: dict[int, bool] = {}
    groups: dict[tuple[int, ...], None] = {}
    for count, number in enumerate(reached, 1):
        if not count % PACES:
            yield
        node = nodes[number]
        if not node.reads:
            continue
        reads = node.keeps or reads_own(node.code, node.own)
        lasts[number] = lasts.get(number, False) or reads
        read = [each for argument, each in enumerate(node.inputs) if argument != node.own]
        if len(read) == 1 and not node.keeps:
            continue
        edges = [len(each) - (number in each) for each in read]
        for members, own_edges in zip(read, edges, strict=True):
            if sum(edges) == own_edges and not node.keeps:  # or else its clock may wake it
                continue
            if len(members) == 1:
                lasts[members[0]] = True
            elif members:
                groups[members] = None
    return Needs(tuple(reached), tuple(lasts.items()), tuple(groups))


def plan_of(origin: KnownStream, needs: Callable[[Region, int], Paused[Needs]]) -> Paused[Plan]:
    """The plan of a stream whose component is cut."""
    count = 0
    streams = {origin: None}
    groups: dict[tuple[Region, int], tuple[int, ...]] = {}
    regions: dict[Region, None] = {}
    entered = dict.fromkeys(origin.entries)
    waiting = deque(entered)
    while waiting:
        region, node = waiting.popleft()
        found = yield from needs(region, node)
        if found.reached:
            regions[region] = None
        for number, _document in found.lasts:
            count += 1
            if not count % PACES:
                yield
            stream = region.streams[number]
            if stream is not None and stream.feeds is None:
                streams[stream] = None
        groups.update({(region, id(members)): members for members in found.groups})
        for number in found.reached:
            count += 1
            if not count % PACES:
                yield
            stream = region.streams[number]
            for entry in stream.crosses if stream is not None else ():
                if entry not in entered:
                    entered[entry] = None
                    waiting.append(entry)
    return Plan(
        origin.entries,
        tuple(streams),
        tuple((region, members) for (region, _id), members in groups.items()),
        max(len(regions), 1),
        sum([_woken(region.wiring.nodes, node) for region, node in origin.entries]),
    )


def _woken(nodes: Sequence[Node], node: int) -> int:
    """How many composites each update of a stream wakes in a region."""
    return sum([not nodes[wake.node].follows for wake in nodes[node].wakes])
