"""Programs, wirings and trees to bytes. Updates are passed through, never read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

import orjson

from sandbox.program import Binding, ChannelCode, Path, Program
from sandbox.text import well_formed
from sandbox.trees import Call, Event, Last, Node, Wiring

MAX_SAFE_INTEGER = 2**53 - 1
"""The last integer up to which JavaScript's numbers leave none out. Later timestamps, such as
nanoseconds, go to the engine as texts, and are bigints there."""

SETTLES, BY_INPUT, SKIPS, WINDOWED = 1, 2, 4, 8
"""The options of a node, as bits; as in trees.js."""

PORTION_NODES = 5000
PORTION_LINKS = 100_000
"""Of a wiring that are sent at once: streams, and what they read and wake together; of one stream
all."""


def encode_program(program: Program) -> bytes:
    """Write a program as JSON, which program_of() reads."""
    try:
        return orjson.dumps(program)
    except TypeError:  # half a surrogate pair, for which there is no UTF-8
        return well_formed(json.dumps(asdict(program), ensure_ascii=False)).encode()


def program_of(raw: dict[str, Any]) -> Program:
    """Read a program from its parsed JSON, as encode_program() writes it."""
    return Program(
        **{
            **raw,
            "arguments": tuple(raw["arguments"]),
            "channels": tuple(ChannelCode(**each) for each in raw["channels"]),
            "bindings": tuple(
                Binding(each["name"], each["argument"], _path(each["path"]))
                for each in raw["bindings"]
            ),
        }
    )


def _path(raw: list[Any]) -> Path:
    """Make a path of lists, as JSON has it, a path of tuples."""
    return tuple(_path(each) if isinstance(each, list) else each for each in raw)


def encode_wiring(
    wiring: Wiring, slot: int, slots: Mapping[str, int], begin: int = 0
) -> Iterator[bytes]:
    """Write a wiring as wire() reads it, a portion at a time, without the first ones.

    `slots` has the numbers of the programs, which are the codes of its composites.
    """
    whole = len(wiring.nodes)
    for first, end in islice(_portions(wiring.nodes), begin, None):
        some = [_node(each, slots) for each in wiring.nodes[first:end]]
        yield _dumped([slot, whole, first, some])


def _portions(nodes: Sequence[Node]) -> Iterator[tuple[int, int]]:
    """Yield where each portion begins and ends."""
    first = links = 0
    for number, node in enumerate(nodes):
        more = len(node.wakes) + sum([len(each) for each in node.inputs])
        if number - first == PORTION_NODES or (number > first and links + more > PORTION_LINKS):
            yield first, number
            first, links = number, 0
        links += more
    yield first, len(nodes)


def _node(node: Node, slots: Mapping[str, int]) -> tuple[Any, ...]:
    options = SETTLES * node.settles + BY_INPUT * node.by_input + SKIPS * node.skips
    options += WINDOWED * node.windowed
    program = -1 if node.code is None else slots[node.code.id]
    own = -1 if node.own is None else node.own
    return program, node.inputs, node.wakes, own, options, node.name


def _dumped(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # half a surrogate pair, for which there is no UTF-8
        return well_formed(json.dumps(value, ensure_ascii=False)).encode()


def encode_frame(calls: Sequence[Call], slots: Mapping[str, int], milliseconds: int) -> bytes:
    """Write calls as grow() reads them; `slots` has the numbers of the wirings.

    No tree is begun after so many milliseconds, except the first one.
    """
    texts = [_call(call, slots[call.wiring.id]) for call in calls]
    return b"[%d,[%b]]" % (milliseconds, b",".join(texts))


def _call(call: Call, slot: int) -> bytes:
    bounds = call.bounds
    return b"[%d,[%b],[%b],%d,%d,%b]" % (
        slot,
        b",".join([_last(each) for each in call.lasts]),
        b",".join([b"[%b]" % b",".join([_event(each) for each in tree]) for tree in call.trees]),
        bounds.hops,
        bounds.computations,
        _dumped([(node, *why) for node, why in call.refused.items()]) if call.refused else b"[]",
    )


def _event(event: Event) -> bytes:
    node, timestamp, document, path, only = event
    if only is not None:
        return b"[%d,%b,%b,%b,%d]" % (node, _time(timestamp), document, orjson.dumps(path), only)
    if path:
        return b"[%d,%b,%b,%b]" % (node, _time(timestamp), document, orjson.dumps(path))
    return b"[%d,%b,%b]" % (node, _time(timestamp), document)


def _last(last: Last) -> bytes:
    node, timestamp, document, state = last
    if state is not None:
        return b"[%d,%b,%b,%b]" % (node, _time(timestamp), document or b"0", state)
    return b"[%d,%b,%b]" % (node, _time(timestamp), document or b"0")


def _time(timestamp: int) -> bytes:
    if -MAX_SAFE_INTEGER <= timestamp <= MAX_SAFE_INTEGER:
        return b"%d" % timestamp
    return b'"%d"' % timestamp
