"""Random regions, and calls of them: in JavaScript, and the same with codes in Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from plain_trees import Computation, Ends, Update, state_of

from sandbox import ChannelCode, Program
from sandbox.trees import Bounds, Call, Event, Last, Node, Path, Tree, Wake, Wiring

NAMES = ("a/x", "b/y", "constructor", "__proto__", "toString", "", "7", "\u20ac", "so/last")
HUGE = 2**53
LATEST = 2**63 - 1

READ = """
  var sum = $input.channels.t["current-value"];
  [ARGUMENTS].forEach(function (each, at) {
    sum += (at + 2) * (each === null ? 7 : each.channels.t["current-value"]);
  });
  sum = sum % 100003;
"""
"""Adds up all inputs, each with its own weight."""

CODES = {
    "adds": "",
    "filters": "if (sum % 3 === 0) return null;",
    "throws": "if (sum % 4 === 0) throw new Error('no');",
    "fails": "if (sum % 4 === 0) return 'a word';",
    "tells the time": "sum += Date.now() % 1000;",
}
KINDS = {"filters": (3, "filtered"), "throws": (4, "script-error"), "fails": (4, "error")}


def program(kind: str, inputs: int) -> Program:
    """A program of so many inputs."""
    arguments = tuple(f"a{number}" for number in range(inputs))
    listed = ", ".join(arguments)
    body = READ.replace("ARGUMENTS", listed) + CODES[kind]
    code = f"function($input, {listed}) {{ {body} return sum; }}"
    name = f"{kind} {inputs}"
    return Program(name, "function", arguments, (ChannelCode("t", code, "number"),))


def _value(update: Update) -> int:
    found: int = json.loads(update.document)["channels"]["t"]["current-value"]
    return found


def python_of(kind: str) -> Callable[[Computation], Any]:
    """The same in Python."""

    def code(given: Computation) -> Any:
        total = _value(given.trigger)
        for at, each in enumerate(given.inputs):
            total += (at + 2) * (7 if each is None else _value(each))
        total %= 100_003
        divisor, end = KINDS.get(kind, (0, ""))
        if divisor and total % divisor == 0:
            raise Ends(end)
        if kind == "tells the time":
            total += 0 if given.timestamp < 10**11 else int(float(given.timestamp)) % 1000
        return {"t": {"current-value": total}}

    return code


def in_python(call: Call) -> Call:
    """The call with the codes of its composites in Python."""
    nodes = [
        replace(each, code=each.code and python_of(each.code.id.rpartition(" ")[0]))
        for each in call.wiring.nodes
    ]
    return replace(call, wiring=Wiring(call.wiring.id, tuple(nodes)))


def an_update(value: int, at: int) -> bytes:
    return b'{"channels":{"t":{"current-value":%d}},"lastUpdate":%d}' % (value, at)


@st.composite
def wirings(draw: st.DrawFn, most: int = 7) -> Wiring:
    """Streams that read each other, in cycles too; wakes of other regions in between."""
    read = draw(st.integers(1, 3))
    whole = read + draw(st.integers(1, most - read))
    any_stream = st.integers(0, whole - 1)
    composites: list[Node] = []
    for number in range(read, whole):
        settles = draw(st.integers(0, 3)) == 0
        members = st.integers(0, read - 1) if settles else any_stream
        groups = draw(
            st.lists(
                st.lists(members, min_size=1, max_size=3, unique=True), min_size=1, max_size=3
            )
        )
        own = draw(st.none() | st.integers(0, len(groups) - 1))
        if own is not None:
            groups[own] = [number]
        kind = draw(st.sampled_from(["adds", "adds", *CODES]))
        composites.append(
            Node(
                code=program(kind, len(groups)),
                inputs=tuple(map(tuple, groups)),
                own=own,
                settles=settles,
                by_input=draw(st.integers(0, 3)) == 0,
                skips=draw(st.integers(0, 3)) == 0,
            )
        )
    nodes = [Node()] * read + composites
    nodes = [
        replace(node, wakes=_wakes(draw, nodes, number), name=_name(draw, number))
        for number, node in enumerate(nodes)
    ]
    return Wiring(repr(nodes), tuple(nodes))


def _wakes(draw: st.DrawFn, nodes: Sequence[Node], number: int) -> tuple[Wake, ...]:
    """Whom a stream wakes: those that read it, in any order; their numbers are even."""
    found = [
        (composite, argument)
        for composite, node in enumerate(nodes)
        for argument, members in enumerate(node.inputs)
        if number in members and argument != node.own and composite != number
    ]
    gaps = draw(st.lists(st.integers(0, 2), min_size=len(found), max_size=len(found)))
    ordered = draw(st.permutations(found))
    return tuple(Wake(2 * (at + sum(gaps[: at + 1])), *each) for at, each in enumerate(ordered))


def _name(draw: st.DrawFn, number: int) -> str:
    return NAMES[number] if draw(st.booleans()) else f"stream {number}"


@st.composite
def calls(draw: st.DrawFn, wiring: Wiring | None = None) -> Call:
    """Some trees of a region, with last updates for some of its streams."""
    wiring = wiring or draw(wirings())
    late = draw(st.sampled_from([0, 0, 0, HUGE - 5, LATEST - 25]))
    times = st.integers(late + 1, late + 25)
    lasts = [
        Last(
            number,
            at,
            an_update(draw(st.integers(0, 50)), at),
            _state(draw, wiring, number, times),
        )
        for number in range(len(wiring.nodes))
        if draw(st.booleans())
        for at in [draw(times)]
    ]
    trees = [_tree(draw, wiring, times) for _ in range(draw(st.integers(1, 5)))]
    bounds = Bounds(draw(st.integers(1, 6)), draw(st.sampled_from([5, 30, 300])))
    names = [each.code.id if each.code else "" for each in wiring.nodes]
    refused = {
        number: ("policy", "not allowed")
        for number, each in enumerate(wiring.nodes)
        if each.code and draw(st.integers(0, 9)) == 0
    }
    return Call(wiring, names, lasts, trees, bounds, refused)


def _state(
    draw: st.DrawFn, wiring: Wiring, number: int, times: st.SearchStrategy[int]
) -> bytes | None:
    if not wiring.nodes[number].by_input or draw(st.booleans()):
        return None
    members = {each for members in wiring.nodes[number].inputs for each in members}
    uses = {wiring.nodes[each].name: draw(times) for each in members if draw(st.booleans())}
    return state_of(uses)


def _tree(draw: st.DrawFn, wiring: Wiring, times: st.SearchStrategy[int]) -> Tree:
    """One update from outside; or several, at places that no wake of the region leads to."""

    def event(path: Path, only: int | None = None) -> Event:
        node, at = draw(st.integers(0, len(wiring.nodes) - 1)), draw(times)
        return Event(node, at, an_update(draw(st.integers(0, 50)), at), path, only)

    how = draw(st.integers(0, 3))
    if how == 0:
        step = event(())
        wakes = wiring.nodes[step.node].wakes
        return [step._replace(only=draw(st.sampled_from(wakes)).number) if wakes else step]
    if how == 1:
        odd = st.integers(0, 3).map(lambda each: 2 * each + 1)
        ways = st.tuples(st.lists(st.integers(0, 7), max_size=2), odd)
        paths = draw(st.sets(ways.map(lambda way: (*way[0], way[1])), min_size=1, max_size=4))
        if draw(st.booleans()):
            paths.add(())
        return [event(path) for path in sorted(paths, key=lambda each: (len(each), each))]
    return [event(())]
