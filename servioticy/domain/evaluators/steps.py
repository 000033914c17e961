"""One computation as a call of its own: what is asked, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from sandbox.revisions import revision_of
from sandbox.trees import (
    CLOCK,
    FOLLOWS,
    Bounds,
    Call,
    Event,
    Grown,
    Kept,
    Last,
    Made,
    Node,
    Wake,
    Wiring,
)
from servioticy.domain.cache import Cache
from servioticy.domain.timing import triggers
from servioticy.domain.verdicts import STALE
from servioticy.domain.wirings import wiring as wiring_of

Lasts: TypeAlias = dict[int, Last]
"""The last updates of streams, by their numbers."""

NONE: Mapping[int, int] = MappingProxyType({})

MAX_NODES = 200_000
"""Of all wirings of single composites that are kept, some 300 bytes each."""

_singles: Cache[tuple[object, ...], Wiring] = Cache(MAX_NODES)


class Outcome(NamedTuple):
    """What comes of one computation."""

    made: Sequence[Made]
    """The composite's own with 0 as their node, those of its sides with the number of these, the
    first being 1."""
    kind: str
    message: str = ""
    inputs: Sequence[int | None] | None = None
    kept: Sequence[Kept] = ()
    """What the composite keeps otherwise than before; the node means nothing."""

    @classmethod
    def of(cls, grown: Grown, sides: Sequence[int] = ()) -> Outcome:
        """What an evaluator answers to a single step, in which sides have these numbers."""
        if not grown.ended:  # a time that means nothing any more
            return cls((), "", kept=grown.kept)
        (ended,) = grown.ended
        made = [
            each._replace(node=sides.index(each.node) + 1) if each.node else each
            for each in grown.made[0]
        ]
        return cls(made, ended.kind, ended.message, ended.inputs, grown.kept)


def decided_here(node: Node, last: Last | None, event: Event, wake: Wake) -> Outcome | None:
    """What comes of a computation, where no code has to be asked: it is stale."""
    if (
        node.keeps
        or node.by_input
        or node.skips
        or (node.windowed and revision_of(event.document))
        or wake.argument == FOLLOWS
        or triggers(event.timestamp, last and last.timestamp)
    ):
        return None
    message = f"trigger {event.timestamp} is not newer than output {last and last.timestamp}"
    return Outcome((), STALE, message)


def step(
    call: Call,
    node: int,
    event: Event,
    wake: Wake,
    lasts: Mapping[int, Last],
    kept: Sequence[Kept] = (),
    at: Sequence[int] = (),
    moment: Any = None,
    traces: Sequence[str] = (),
) -> Call:
    """The computation that an update of a call's tree causes, as a call of its own.

    Its wiring has no groups: each input is the stream that is read through it now. `kept` is what
    the composite keeps, `at` the log's time, and `moment` what has happened by then;
    `traces` has the tree's context, if there is one.
    """
    composite = call.wiring.nodes[node]
    read = inputs_read(composite, event, wake, lasts)
    if composite.own is not None:
        read[composite.own] = node
    # What has no update is a stream of its own for each input, so that few wirings differ.
    streams = [each if each is not None else -1 - number for number, each in enumerate(read)]
    numbers = {each: number for number, each in enumerate(dict.fromkeys([node, *streams]))}
    inputs = tuple([numbers[each] for each in streams])
    sides = {numbers.setdefault(each, len(numbers)): each for each in composite.sides}
    names: tuple[str, ...] = ()
    if composite.by_input or composite.keeps:
        names = tuple([call.wiring.nodes[each].name if each >= 0 else "" for each in numbers])
    only = wake.argument
    clock = max(numbers.values()) + 1 if only == CLOCK else None
    follows = numbers[event.node] if only == FOLLOWS else None
    wiring = single(call.wiring, node, inputs, names, clock, follows, sides)
    unread = event.node if composite.windowed or only == FOLLOWS else None
    known = [
        lasts[each]._replace(node=number)
        for each, number in numbers.items()
        if each in lasts and each != unread
    ]
    if wake.argument == CLOCK:
        numbers.setdefault(event.node, len(numbers))
    alone = event._replace(node=numbers[event.node], path=(), only=0 if only == FOLLOWS else only)
    refused = {0: call.refused[node]} if node in call.refused else {}
    own_names = (call.names[node], *[""] * (len(numbers) - 1))
    theirs = [each._replace(node=0) for each in kept]
    bounds = Bounds(1, 1)
    return Call(wiring, own_names, known, [[alone]], bounds, refused, theirs, at, moment, traces)


def inputs_read(
    composite: Node, event: Event, wake: Wake, lasts: Mapping[int, Last]
) -> list[int | None]:
    """Which stream is read through each input, by its number; None: one without updates."""
    return [
        event.node if composite.comes(wake.argument, number) else _newest(members, lasts)
        for number, members in enumerate(composite.inputs)
    ]


def single(
    whole: Wiring,
    node: int,
    inputs: tuple[int, ...],
    names: tuple[str, ...],
    clock: int | None = None,
    follows: int | None = None,
    sides: Mapping[int, int] = NONE,
) -> Wiring:
    """A composite of a region by itself, as number 0, and what it reads by these numbers.

    `names` are those of all, where its state names them; its `clock` has that number, where that
    wakes it, and what brings the revision that it `follows`. Its `sides` have these numbers here,
    and those in the whole. It is kept while there is room.
    """
    key = whole.id, node, inputs, names, clock, follows, tuple(sides)
    found = _singles.get(key)
    if found is None:
        codes = {number: whole.nodes[each].code for number, each in sides.items()}
        found = _cut_out(whole.nodes[node], inputs, names, clock, follows, codes)
        _singles.put(key, found, len(found.nodes))
    return found


def _cut_out(
    composite: Node,
    inputs: tuple[int, ...],
    names: tuple[str, ...],
    clock: int | None,
    follows: int | None,
    sides: Mapping[int, Any],
) -> Wiring:
    wakes: list[list[Wake]] = [[] for _ in range(1 + max((*inputs, *sides), default=0))]
    for argument, number in enumerate(inputs):
        if number:
            wakes[number].append(Wake(argument, 0, argument))
    if clock is not None:
        wakes.append([Wake(CLOCK, 0, CLOCK)])
    if follows is not None:
        wakes[follows] = [Wake(0, 0, FOLLOWS)]
    nodes = [
        Node(
            tuple(each),
            name=names[number] if number < len(names) else "",
            brings=number == follows,
        )
        for number, each in enumerate(wakes)
    ]
    nodes[0] = replace(
        composite,
        wakes=(),
        inputs=tuple([(each,) for each in inputs]),
        settles=False,
        name=nodes[0].name,
        sides=tuple(sides),
    )
    for number, code in sides.items():
        nodes[number] = replace(nodes[number], code=code)
    return wiring_of(tuple(nodes))


def _newest(members: Sequence[int], lasts: Mapping[int, Last]) -> int | None:
    """The member with the newest update, the first of equals; None where there is none."""
    known = [each for each in members if each in lasts]
    return max(known, key=lambda each: lasts[each].timestamp) if known else None
