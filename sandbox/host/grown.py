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
from sandbox.host.outputs import Shape, check_output, shape_of
from sandbox.program import Program
from sandbox.trees import Call, Ended, Made, Node, Tree, Wiring

MAX_TICKS = 60_000
"""Milliseconds of a program in a frame; more is a clock that was set."""

MAX_STATE_BYTES = 1_000_000

RAN = frozenset({"emitted", "filtered", "script-error", "error", "syntax", "missing"})
"""How computations end that came to their inputs."""

DID_NOT_RUN = frozenset({"stale", "superseded", "hop-limit"})

Index = Annotated[int, msgspec.Meta(ge=0)]
Timestamp = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Row(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """An update that was made: as sandbox.trees.Made."""

    parent: Index
    wake: Index
    node: Index
    timestamp: Timestamp
    document: msgspec.Raw
    state: msgspec.Raw | None = None


class _Ending(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """How computations ended: as sandbox.trees.Ended."""

    node: Index
    kind: str
    count: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
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


class Known(NamedTuple):
    """What is looked up again and again of a wiring."""

    nodes: Sequence[Node]
    wakes: Mapping[tuple[int, int], int]
    """Whom a stream wakes by which number."""
    shapes: Sequence[Shape | None]
    """What the outputs of each composite look like."""
    by_input: bool
    """Whether there is a composite that goes by its inputs."""


def known(wiring: Wiring) -> Known:
    """Look a wiring through, once."""
    wakes = {
        (number, wake.number): wake.node
        for number, node in enumerate(wiring.nodes)
        for wake in node.wakes
    }
    shapes: dict[str, Shape] = {}
    return Known(
        wiring.nodes,
        wakes,
        [None if each.code is None else _shape(each.code, shapes) for each in wiring.nodes],
        any(each.by_input for each in wiring.nodes),
    )


def _shape(program: Program, shapes: dict[str, Shape]) -> Shape:
    if program.id not in shapes:
        shapes[program.id] = shape_of(program)
    return shapes[program.id]


_decode = msgspec.json.Decoder(list[_Part]).decode


def decode_grown(answer: bytes, calls: Sequence[Call], wirings: Sequence[Known]) -> list[Part]:
    """Return what came of each call; `wirings` are theirs. Raises MalformedAnswer."""
    try:
        parts = _decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedAnswer(clipped(str(error))) from error
    if len(parts) != len(calls):
        raise MalformedAnswer(f"not {len(calls)} answers")
    return [_part(*each) for each in zip(parts, calls, wirings, strict=True)]


def _part(part: _Part, call: Call, wiring: Known) -> Part:
    if len(part.made) > len(call.trees) or part.failed >= len(call.trees):
        raise MalformedAnswer("more trees than there were")
    if part.failed >= 0 and (part.made or part.ended):
        raise MalformedAnswer("a tree that failed, and what came of it")
    reading = _Reading(call, wiring)
    made = [reading.tree(*each) for each in zip(part.made, call.trees, strict=False)]
    ended = [reading.ending(each, made) for each in part.ended]
    emitted = {each.node: each.times for each in ended if each.kind == "emitted"}
    if emitted != reading.count:
        raise MalformedAnswer("other counts than updates")
    ticks = {n: max(0, min(t, MAX_TICKS)) for n, t in part.ticks if n < len(wiring.nodes)}
    return Part(made, ended, ticks, part.failed)


class _Reading:
    """Reads the answer to one call, tree by tree."""

    def __init__(self, call: Call, wiring: Known) -> None:
        self._call = call
        self._nodes, self._wakes, self._shapes, by_input = wiring
        self._lasts = {each.node: each.timestamp for each in call.lasts}
        times = [each.timestamp for each in call.lasts]
        self._highest = max(
            [*times, *(each.timestamp for tree in call.trees for each in tree)], default=0
        )
        # Who goes by its inputs makes an output that is a tick newer than its last.
        self._step = int(by_input)
        self.count: Counter[int] = Counter()
        """How many updates of each composite there are."""

    def tree(self, rows: Sequence[_Row], tree: Tree) -> list[Made]:
        """Return what a tree made."""
        sources = [(each.node, each.timestamp) for each in tree]
        ordered = len(tree) == 1
        seen: set[tuple[int, int]] = set()
        before = (-1, -1)
        lasts, wakes, highest = self._lasts, self._wakes, self._highest
        made: list[Made] = []
        for row in rows:
            parent, wake, node, timestamp = row.parent, row.wake, row.node, row.timestamp
            if parent >= len(sources):
                raise MalformedAnswer("an update of nothing")
            source, trigger = sources[parent]
            if wakes.get((source, wake)) != node:
                raise MalformedAnswer("an update of a stream that was not woken")
            at = parent, wake
            if at in seen or (ordered and at < before):
                raise MalformedAnswer("an update twice, or in another order")
            seen.add(at)
            before = at
            highest += self._step
            last = lasts.get(node)
            if (
                timestamp < trigger
                or timestamp > highest
                or (last is not None and timestamp <= last)
            ):
                raise MalformedAnswer("not a time that follows from the inputs")
            lasts[node] = timestamp
            document = bytes(row.document)
            shape = self._shapes[node]
            if shape is None:
                raise MalformedAnswer("an update of a stream that is only read")
            check_output(document, timestamp, shape)
            state = None if row.state is None else self._state(row.state, node)
            made.append(Made(parent, wake, node, timestamp, document, state))
            sources.append((node, timestamp))
            self.count[node] += 1
        self._highest = highest
        return made

    def ending(self, ending: _Ending, made: Sequence[Sequence[Made]]) -> Ended:
        """Return how computations ended."""
        node, kind, count, tree, parent, message, inputs = (
            ending.node,
            ending.kind,
            ending.count,
            ending.tree,
            ending.parent,
            ending.message,
            ending.inputs,
        )
        if node >= len(self._nodes) or self._shapes[node] is None:
            raise MalformedAnswer("an ending of no composite")
        if tree >= len(made) or parent >= len(self._call.trees[tree]) + len(made[tree]):
            raise MalformedAnswer("an ending of nothing")
        refused = self._call.refused.get(node)
        if kind not in DID_NOT_RUN and (
            inputs is None or len(inputs) != len(self._nodes[node].inputs)
        ):
            raise MalformedAnswer("not the inputs of the composite")
        if not (kind in DID_NOT_RUN or kind in RAN or (refused and kind == refused[0])):
            raise MalformedAnswer("an ending that cannot be")
        return Ended(node, kind, count, tree, parent, clipped(message), inputs)

    def _state(self, raw: msgspec.Raw, node: int) -> bytes:
        """A state is what the composite gets next time: numbers, or their digits, by name."""
        state = bytes(raw)
        if not self._nodes[node].by_input or len(state) > MAX_STATE_BYTES:
            raise MalformedAnswer("a state that cannot be")
        try:
            parsed = orjson.loads(state)
        except orjson.JSONDecodeError as error:
            raise MalformedAnswer("a state that is not JSON") from error
        if type(parsed) is not dict or not all(
            type(each) in (int, str) for each in parsed.values()
        ):
            raise MalformedAnswer("a state of another shape")
        return state
