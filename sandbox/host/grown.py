"""What a worker says that its trees made, believed only as far as it fits the question.

It may lie about its tenant's values. But streams have to be of the region, woken by what the
answer says and in that order, at most once each; times may only advance, and stay among
those that went in; and every output is of its program's shape. Anything else is
MalformedAnswer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec
import orjson

from sandbox.host.answers import MalformedAnswer, clipped
from sandbox.host.outputs import Shape
from sandbox.program import Program
from sandbox.trees import Call, Ended, Made, Tree, Wiring

MAX_TICKS = 60_000
"""Milliseconds of a program in a frame; more is a clock that was set."""

MAX_STATE_BYTES = 1_000_000

RAN = frozenset({"emitted", "filtered", "script-error", "error", "syntax", "missing"})
"""How computations end that came to their inputs."""

DID_NOT_RUN = frozenset({"stale", "superseded", "hop-limit"})

Index = Annotated[int, msgspec.Meta(ge=0)]
Timestamp = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


NO_STATE = msgspec.Raw()


class _Row(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """An update that was made: as sandbox.trees.Made."""

    parent: Index
    wake: Index
    node: Index
    timestamp: Timestamp
    document: msgspec.Raw
    state: msgspec.Raw = NO_STATE


class _Ending(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """How computations ended: as sandbox.trees.Ended."""

    node: Index
    kind: str
    times: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    tree: Index
    parent: Index
    message: str
    inputs: list[Timestamp | None] | None = None


class _Part(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The answer to one call."""

    made: list[list[_Row]]
    ended: list[_Ending]
    ticks: list[tuple[Index, int]]
    failed: Annotated[int, msgspec.Meta(ge=-1)]


class Part(NamedTuple):
    """What came of a call in one frame."""

    made: list[list[Made]]
    """Of as many trees as were grown."""
    ended: list[Ended]
    ticks: Mapping[int, int]
    """Milliseconds, by node, as far as the clock was seen to move."""
    failed: int
    """The number of the tree that cannot be grown whole; -1 if there is none."""


class Known:
    """What is looked up again and again of a wiring."""

    def __init__(self, wiring: Wiring, shapes: dict[str, Shape]) -> None:
        """`shapes` are those of the programs met so far, by their ids."""
        self.inputs = [len(each.inputs) for each in wiring.nodes]
        """How many inputs each composite has."""
        self.wakes = [{w.number: w.node for w in each.wakes} for each in wiring.nodes]
        """Whom each stream wakes, by the number of the wake."""
        self.shapes = [_shape(each.code, shapes) for each in wiring.nodes]
        """What the outputs of each composite look like; None for streams that are only read."""
        self.by_input = [each.by_input for each in wiring.nodes]
        self.step = int(any(self.by_input))
        """By how much an output may be newer than all that went in: who goes by its inputs
        makes one a tick newer than its last."""


def _shape(program: Program | None, shapes: dict[str, Shape]) -> Shape | None:
    if program is None:
        return None
    if program.id not in shapes:
        shapes[program.id] = Shape(program)
    return shapes[program.id]


_decode = msgspec.json.Decoder(list[_Part]).decode


Outputs = dict[Shape, tuple[list[msgspec.Raw], list[int]]]
"""The documents and times of new updates by their shape: they are looked at together."""


def decode_grown(answer: bytes, calls: Sequence[Call], wirings: Sequence[Known]) -> list[Part]:
    """Return what came of each call; `wirings` are theirs. Raises MalformedAnswer."""
    try:
        parts = _decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedAnswer(clipped(str(error))) from error
    if len(parts) != len(calls):
        raise MalformedAnswer(f"not {len(calls)} answers")
    outputs: Outputs = {}
    found = [_part(*each, outputs) for each in zip(parts, calls, wirings, strict=True)]
    for shape, (documents, timestamps) in outputs.items():
        shape.check(documents, timestamps)
    return found


def _part(part: _Part, call: Call, wiring: Known, outputs: Outputs) -> Part:
    trees, given = part.made, call.trees
    if len(trees) > len(given) or part.failed >= len(given):
        raise MalformedAnswer("more trees than there were")
    if part.failed >= 0 and (trees or part.ended):
        raise MalformedAnswer("a tree that failed, and what came of it")
    lasts = {each.node: each.timestamp for each in call.lasts}
    highest = max(lasts.values(), default=0)
    made: list[list[Made]] = []
    nodes: list[int] = []
    for rows, tree in zip(trees, given, strict=False):
        highest = max(highest, *[each.timestamp for each in tree])
        some = _tree(rows, tree, wiring, lasts, highest + wiring.step * len(rows), outputs)
        made.append(some)
        nodes += [each.node for each in some]
        highest += wiring.step * len(rows)
    ended = [_ending(each, call, made, wiring) for each in part.ended]
    emitted = {each.node: each.times for each in ended if each.kind == "emitted"}
    if emitted != Counter(nodes):
        raise MalformedAnswer("other counts than updates")
    ticks = {n: max(0, min(t, MAX_TICKS)) for n, t in part.ticks if n < len(wiring.inputs)}
    return Part(made, ended, ticks, part.failed)


def _tree(
    rows: Sequence[_Row],
    tree: Tree,
    wiring: Known,
    lasts: dict[int, int],
    highest: int,
    outputs: Outputs,
) -> list[Made]:
    """Return what a tree made; `lasts` are each stream's last timestamps, and move on."""
    nodes = [each.node for each in tree]
    times = [each.timestamp for each in tree]
    alone = len(tree) == 1
    before, seen = (-1, -1), set[tuple[int, int]]()
    made: list[Made] = []
    all_wakes, shapes = wiring.wakes, wiring.shapes
    for row in rows:
        parent, wake, node, timestamp = row.parent, row.wake, row.node, row.timestamp
        if parent >= len(nodes) or all_wakes[nodes[parent]].get(wake) != node:
            raise MalformedAnswer("an update of a stream that was not woken")
        at = parent, wake
        if alone:
            if at <= before:
                raise MalformedAnswer("updates in another order")
            before = at
        elif at in seen:
            raise MalformedAnswer("an update twice")
        else:
            seen.add(at)
        last = lasts.get(node)
        if not times[parent] <= timestamp <= highest or (last is not None and timestamp <= last):
            raise MalformedAnswer("not a time that follows from the inputs")
        lasts[node] = timestamp
        shape = shapes[node]
        if shape is None:
            raise MalformedAnswer("an update of a stream that is only read")
        raw = row.document
        some = outputs.get(shape)
        if some is None:
            some = outputs[shape] = [], []
        some[0].append(raw)
        some[1].append(timestamp)
        state = _state(row.state, wiring.by_input[node]) if len(row.state) else None
        made.append(Made(parent, wake, node, timestamp, bytes(raw), state))
        nodes.append(node)
        times.append(timestamp)
    return made


def _ending(ending: _Ending, call: Call, made: Sequence[Sequence[Made]], wiring: Known) -> Ended:
    """Return how computations ended."""
    node, kind, tree, inputs = ending.node, ending.kind, ending.tree, ending.inputs
    if node >= len(wiring.shapes) or wiring.shapes[node] is None:
        raise MalformedAnswer("an ending of no composite")
    if tree >= len(made) or ending.parent >= len(call.trees[tree]) + len(made[tree]):
        raise MalformedAnswer("an ending of nothing")
    if kind not in DID_NOT_RUN:
        refused = call.refused.get(node)
        if kind not in RAN and not (refused and kind == refused[0]):
            raise MalformedAnswer("an ending that cannot be")
        if inputs is None or len(inputs) != wiring.inputs[node]:
            raise MalformedAnswer("not the inputs of the composite")
    return Ended(node, kind, ending.times, tree, ending.parent, clipped(ending.message), inputs)


def _state(raw: msgspec.Raw, may_have: bool) -> bytes:
    """Return what the composite gets next time: numbers, or their digits, by name."""
    state = bytes(raw)
    if not may_have or len(state) > MAX_STATE_BYTES:
        raise MalformedAnswer("a state that cannot be")
    try:
        parsed = orjson.loads(state)
    except orjson.JSONDecodeError as error:
        raise MalformedAnswer("a state that is not JSON") from error
    if type(parsed) is not dict or not all(type(each) in (int, str) for each in parsed.values()):
        raise MalformedAnswer("a state of another shape")
    return state
