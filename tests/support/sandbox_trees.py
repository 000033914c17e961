"""Small regions for tests of the sandbox, and a caller that takes what a pool leaves over."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import plain_trees
from plain_trees import Computation, Ends, lasts_after, state_of

from sandbox import Binding, ChannelCode, Program, SandboxPool
from sandbox.trees import Bounds, Call, Ended, Event, Grown, Last, Made, Node, Tree, Wake, Wiring

VALUE = ("channels", "t", "current-value")
BOUNDS = Bounds(hops=100, computations=100_000)
Outcome = Made | Ended


def an_update(value: Any, at: int = 1) -> bytes:
    return json.dumps({"channels": {"t": {"current-value": value}}, "lastUpdate": at}).encode()


def an_event(value: Any = 1, at: int = 2, node: int = 0) -> Event:
    return Event(node, at, an_update(value, at))


def events(count: int, start: int = 0) -> list[Event]:
    """Updates 0, 1, 2, ... at 1, 2, 3, ..."""
    return [an_event(n, n + 1) for n in range(start, start + count)]


def a_formula(code: str, name: str = "", type_: str = "number") -> Program:
    """An expression over one value, $0."""
    channels = (ChannelCode("t", code, type_),)
    return Program(
        name or code, "expression", ("a",), channels, bindings=(Binding("$0", 0, VALUE),)
    )


def a_function(body: str, type_: str = "number") -> Program:
    """A function of one input, A."""
    code = f"function(A){{{body}}}"
    return Program(f"{type_} {code}", "function", ("A",), (ChannelCode("t", code, type_),))


def wired(program: Program, own: int | None = None, **options: bool) -> Wiring:
    """A region of one composite: its inputs are the streams 0, 1, ..., it has the next number."""
    composite = len(program.arguments)
    nodes = [
        Node() if number == own else Node((Wake(0, composite, number),), name=f"stream {number}")
        for number in range(composite)
    ]
    inputs = tuple((composite,) if number == own else (number,) for number in range(composite))
    nodes.append(Node(code=program, inputs=inputs, own=own, **options))
    return Wiring(repr((program.id, own, options)), tuple(nodes))


def a_call(
    program: Program,
    *trees: Event | Tree,
    lasts: Sequence[Last] = (),
    own: int | None = None,
    bounds: Bounds = BOUNDS,
    **options: bool,
) -> Call:
    """A call of that region. A lone event is a tree."""
    wiring = wired(program, own, **options)
    return a_call_of(wiring, *trees, lasts=lasts, bounds=bounds)


def a_call_of(
    wiring: Wiring,
    *trees: Event | Tree,
    lasts: Sequence[Last] = (),
    bounds: Bounds = BOUNDS,
    name: str = "",
) -> Call:
    """A call whose programs are called by their ids, and `name`."""
    names = [node.code.id + name if node.code else "" for node in wiring.nodes]
    whole = [[each] if isinstance(each, Event) else each for each in trees]
    return Call(wiring, names, lasts, whole, bounds)


def value_of(made: Made, channel: str = "t") -> Any:
    return json.loads(made.document)["channels"][channel]["current-value"]


def values(grown: Grown) -> list[Any]:
    """What each tree made, in order."""
    return [[value_of(made) for made in tree] for tree in grown.made]


def kinds(grown: Grown) -> dict[str, int]:
    """How many computations ended in which way."""
    found: dict[str, int] = {}
    for each in grown.ended:
        found[each.kind] = found.get(each.kind, 0) + each.times
    return found


def once(pool: SandboxPool, call: Call, tenant: str = "tenant") -> Outcome:
    """What comes of one computation: of the one tree of the call, its first wake."""
    ((event,),) = call.trees
    first = call.wiring.nodes[event.node].wakes[0].number
    only = first if event.only is None else event.only
    (grown,) = pool.grow(tenant, [replace(call, trees=[[event._replace(only=only)]])])
    assert not grown.failed
    (ended,) = grown.ended
    ((*made,),) = grown.made
    assert len(made) == (ended.kind == "emitted")
    return made[0] if made else ended


def one_by_one(pool: SandboxPool, call: Call, tenant: str = "tenant") -> list[Outcome]:
    """What comes of each tree, where each is one computation."""
    found: list[Outcome] = []
    for tree in call.trees:
        step = replace(call, trees=[tree])
        outcome = once(pool, step, tenant)
        found.append(outcome)
        made = [outcome] if isinstance(outcome, Made) else []
        call = replace(call, lasts=lasts_after(step, Grown([made], [])))
    return found


def result(outcome: Outcome) -> Any:
    """The value of channel t, or how the computation ended."""
    return value_of(outcome) if isinstance(outcome, Made) else outcome.kind


def grow_all(
    pool: SandboxPool, call: Call, tenant: str = "tenant", within: float | None = None
) -> Grown:
    """Grow all trees of a call: in as many pieces as the pool takes; where that fails each tree
    alone, and what fails then step by step."""
    whole, alone = Grown([], []), False
    while call.trees:
        asked = replace(call, trees=call.trees[:1]) if alone else call
        (grown,) = pool.grow(tenant, [asked], within)
        if grown.failed and len(asked.trees) > 1:
            alone = True
            continue
        if grown.failed:
            grown = step_by_step(pool, asked, tenant)
        assert grown.made, "it makes no way"
        whole = joined(whole, grown)
        call = rest_of(call, grown)
    return whole


def rest_of(call: Call, grown: Grown) -> Call:
    """What is left of a call, from where its first trees have led."""
    return replace(call, lasts=lasts_after(call, grown), trees=call.trees[len(grown.made) :])


def joined(first: Grown, then: Grown) -> Grown:
    """What came of two parts of a call."""
    ended = {(each.node, each.kind): each for each in first.ended}
    for each in then.ended:
        before = ended.get((each.node, each.kind))
        times = each.times + (before.times if before else 0)
        ended[each.node, each.kind] = each._replace(times=times, tree=each.tree + len(first.made))
    return Grown([*first.made, *then.made], list(ended.values()))


def step_by_step(pool: SandboxPool, call: Call, tenant: str = "tenant") -> Grown:
    """Grow the trees of a call outside, and ask the pool for each computation alone."""

    def code(asked: Computation) -> Any:
        others = [each for n, each in enumerate(asked.inputs) if n != asked.argument]
        state = None if asked.uses is None else state_of(asked.uses)
        lasts = {
            each.node: Last(each.node, each.timestamp, each.document)
            for each in others
            if each is not None
        }
        if asked.last is not None:
            lasts[asked.node] = Last(asked.node, asked.last.timestamp, asked.last.document, state)
        trigger = asked.trigger
        event = Event(trigger.node, trigger.timestamp, trigger.document, only=asked.wake)
        step = replace(call, lasts=list(lasts.values()), trees=[[event]])
        outcome = once(pool, step, tenant)
        if isinstance(outcome, Ended):
            raise Ends(outcome.kind, outcome.message)
        return json.loads(outcome.document)["channels"]

    nodes = [replace(each, code=each.code and code) for each in call.wiring.nodes]
    wiring = Wiring(call.wiring.id, tuple(nodes))
    return plain_trees.grow(replace(call, wiring=wiring))


def told(grown: Grown) -> Any:
    """What a call came to, as far as the contract says it: messages are anybody's."""
    made = [
        [
            each._replace(
                document=json.loads(each.document), state=each.state and uses(each.state)
            )
            for each in tree
        ]
        for tree in grown.made
    ]
    return made, sorted(map(ending, grown.ended)), grown.failed


def uses(state: bytes) -> dict[str, int]:
    return {name: int(at) for name, at in json.loads(state).items()}


def ending(ended: Ended) -> Any:
    inputs = None if ended.inputs is None else [str(each) for each in ended.inputs]
    return ended._replace(message="", inputs=inputs)
