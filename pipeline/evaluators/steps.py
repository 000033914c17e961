"""One computation as a call of its own: what is asked, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from cachetools import LRUCache

from sandbox.trees import Bounds, Call, Event, Grown, Last, Made, Node, Wake, Wiring
from servioticy.domain.regions import wiring as wiring_of
from servioticy.domain.timing import triggers
from servioticy.domain.verdicts import STALE

Lasts: TypeAlias = dict[int, Last]
"""The last updates of streams, by their numbers."""

MAX_NODES = 200_000
"""Of all wirings of single composites that are kept, some 300 bytes each: one that reads a
large group has as many as the group has members."""

Single: TypeAlias = tuple[Wiring, tuple[int, ...]]
"""The wiring of a single composite, and the numbers that its streams have in the region."""

_singles: LRUCache[tuple[str, int], Single] = LRUCache(
    MAX_NODES, getsizeof=lambda single: len(single[1])
)


class Outcome(NamedTuple):
    """What comes of one computation."""

    made: Made | None
    kind: str
    message: str = ""
    inputs: Sequence[int | None] | None = None

    @classmethod
    def of(cls, grown: Grown) -> Outcome:
        """What an evaluator answers to a single step."""
        (ended,) = grown.ended
        made = grown.made[0][0] if grown.made[0] else None
        return cls(made, ended.kind, ended.message, ended.inputs)


def decided_here(node: Node, last: Last | None, event: Event) -> Outcome | None:
    """What comes of a computation, where no code has to be asked: it is stale."""
    if node.by_input or node.skips or triggers(event.timestamp, last and last.timestamp):
        return None
    message = f"trigger {event.timestamp} is not newer than output {last and last.timestamp}"
    return Outcome(None, STALE, message)


def step(call: Call, node: int, event: Event, wake: Wake, lasts: Mapping[int, Last]) -> Call:
    """The computation that an update of a call's tree causes, as a call of its own."""
    wiring, streams = single(call.wiring, node)
    needed = dict.fromkeys([node])
    for members in call.wiring.nodes[node].inputs:
        needed[_newest(members, lasts)] = None
    numbers = {stream: number for number, stream in enumerate(streams)}
    known = [lasts[each]._replace(node=numbers[each]) for each in needed if each in lasts]
    alone = event._replace(node=numbers[event.node], path=(), only=wake.number)
    names = (call.names[node], *[""] * (len(streams) - 1))
    refused = {0: call.refused[node]} if node in call.refused else {}
    return Call(wiring, names, known, [[alone]], Bounds(1, 1), refused)


def single(whole: Wiring, node: int) -> Single:
    """A composite of a region by itself; kept while there is room."""
    key = whole.id, node
    found = _singles.get(key)
    if found is None:
        found = _cut_out(whole, node)
        if len(found[1]) <= MAX_NODES:
            _singles[key] = found
    return found


def _cut_out(whole: Wiring, node: int) -> Single:
    composite = whole.nodes[node]
    streams = tuple(dict.fromkeys([node, *(each for read in composite.inputs for each in read)]))
    numbers = {stream: number for number, stream in enumerate(streams)}
    nodes = [
        Node(
            tuple(
                each._replace(node=0) for each in whole.nodes[stream].wakes if each.node == node
            ),
            name=whole.nodes[stream].name,
        )
        for stream in streams
    ]
    nodes[0] = Node(
        (),
        composite.code,
        tuple(tuple(numbers[each] for each in read) for read in composite.inputs),
        composite.own,
        by_input=composite.by_input,
        skips=composite.skips,
        name=composite.name,
    )
    return wiring_of(tuple(nodes)), streams


def _newest(members: Sequence[int], lasts: Mapping[int, Last]) -> int:
    """The member with the newest update, the first of equals; any where there is none."""
    known = [each for each in members if each in lasts]
    return max(known, key=lambda each: lasts[each].timestamp) if known else -1
