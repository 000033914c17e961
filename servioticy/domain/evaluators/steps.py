"""One computation as a call of its own: what is asked, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from sandbox.trees import Bounds, Call, Event, Grown, Last, Made, Node, Wake, Wiring
from servioticy.domain.cache import Cache
from servioticy.domain.timing import triggers
from servioticy.domain.verdicts import STALE
from servioticy.domain.wirings import wiring as wiring_of

Lasts: TypeAlias = dict[int, Last]
"""The last updates of streams, by their numbers."""

MAX_NODES = 200_000
"""Of all wirings of single composites that are kept, some 300 bytes each."""

_singles: Cache[tuple[object, ...], Wiring] = Cache(MAX_NODES)


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
    """The computation that an update of a call's tree causes, as a call of its own.

    Its wiring has no groups: each input is the stream that is read through it now.
    """
    composite = call.wiring.nodes[node]
    read = [_newest(members, lasts) for members in composite.inputs]
    read[wake.argument] = event.node
    if composite.own is not None:
        read[composite.own] = node
    # What has no update is a stream of its own for each input, so that few wirings differ.
    streams = [each if each is not None else -1 - number for number, each in enumerate(read)]
    numbers = {each: number for number, each in enumerate(dict.fromkeys([node, *streams]))}
    inputs = tuple([numbers[each] for each in streams])
    names: tuple[str, ...] = ()
    if composite.by_input:
        names = tuple([call.wiring.nodes[each].name if each >= 0 else "" for each in numbers])
    wiring = single(call.wiring, node, inputs, names)
    known = [
        lasts[each]._replace(node=number) for each, number in numbers.items() if each in lasts
    ]
    alone = event._replace(node=numbers[event.node], path=(), only=wake.argument)
    refused = {0: call.refused[node]} if node in call.refused else {}
    own_names = (call.names[node], *[""] * (len(numbers) - 1))
    return Call(wiring, own_names, known, [[alone]], Bounds(1, 1), refused)


def single(whole: Wiring, node: int, inputs: tuple[int, ...], names: tuple[str, ...]) -> Wiring:
    """A composite of a region by itself, as number 0, and what it reads by these numbers.

    `names` are those of all, where its state names them. It is kept while there is room.
    """
    key = whole.id, node, inputs, names
    found = _singles.get(key)
    if found is None:
        found = _cut_out(whole.nodes[node], inputs, names)
        _singles.put(key, found, len(found.nodes))
    return found


def _cut_out(composite: Node, inputs: tuple[int, ...], names: tuple[str, ...]) -> Wiring:
    wakes: list[list[Wake]] = [[] for _ in range(1 + max(inputs, default=0))]
    for argument, number in enumerate(inputs):
        if number:
            wakes[number].append(Wake(argument, 0, argument))
    nodes = [
        Node(tuple(each), name=names[number] if names else "") for number, each in enumerate(wakes)
    ]
    nodes[0] = replace(
        composite,
        wakes=(),
        inputs=tuple([(each,) for each in inputs]),
        settles=False,
        name=nodes[0].name,
    )
    return wiring_of(tuple(nodes))


def _newest(members: Sequence[int], lasts: Mapping[int, Last]) -> int | None:
    """The member with the newest update, the first of equals; None where there is none."""
    known = [each for each in members if each in lasts]
    return max(known, key=lambda each: lasts[each].timestamp) if known else None
