"""What a worker says that its trees made, believed only as far as it fits the question.

It may lie about its tenant's values. But streams have to be of the region, woken by what the
answer says and in that order, at most once each and within the bounds; times may only advance,
and stay among those that went in; every output is of its program's shape; every wake has ended
in one way, and the first tree has been grown. Anything else is MalformedAnswer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec

from sandbox.host.answers import MalformedAnswer, clipped
from sandbox.host.outputs import Shape, is_one_line
from sandbox.program import Program
from sandbox.trees import ROOT, Call, Ended, Event, Made, Tree, Wiring

MAX_TICKS = 60_000
"""Milliseconds of a program in a frame; more is a clock that was set."""

MAX_STATE_BYTES = 1_000_000

RAN = frozenset({"emitted", "filtered", "script-error", "error"})
"""How computations end whose code was run."""

CAME = RAN | {"syntax", "missing"}
"""How computations end that came to their inputs."""

DID_NOT_RUN = frozenset({"stale", "superseded", "hop-limit"})

NO_STATE = msgspec.Raw(b"")

Index = Annotated[int, msgspec.Meta(ge=0)]
Timestamp = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


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


State = dict[str, Timestamp | Annotated[str, msgspec.Meta(pattern=r"^-?[0-9]{1,19}\Z")]]
"""By the names of streams what was last used of each: a number, or its digits."""


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


class Woken(NamedTuple):
    """Whom an update wakes."""

    by_number: Mapping[int, int]
    composites: Collection[int]


NOBODY = Woken({}, ())


class Known:
    """What is looked up again and again of a wiring."""

    def __init__(self, wiring: Wiring, shapes: dict[str, Shape]) -> None:
        """`shapes` are those of the programs met so far, by their ids."""
        self.inputs = [len(each.inputs) for each in wiring.nodes]
        """How many inputs each composite has."""
        self.woken = [
            Woken({w.number: w.node for w in each.wakes}, {w.node for w in each.wakes})
            for each in wiring.nodes
        ]
        """Whom an update of each stream wakes."""
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
_decode_state = msgspec.json.Decoder(State).decode


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
    if not parts[0].made and parts[0].failed < 0 and calls[0].trees:
        raise MalformedAnswer("not even one tree")  # whoever goes on would never come to an end
    outputs: Outputs = {}
    found = [
        _Reading(call, wiring, outputs).part(part)
        for part, call, wiring in zip(parts, calls, wirings, strict=True)
    ]
    for shape, (documents, timestamps) in outputs.items():
        shape.check(documents, timestamps)
    return found


class _Reading:
    """Reads the answer to one call."""

    def __init__(self, call: Call, wiring: Known, outputs: Outputs) -> None:
        self._call, self._wiring, self._outputs = call, wiring, outputs
        self._lasts = {each.node: each.timestamp for each in call.lasts}
        self._highest = max(self._lasts.values(), default=-(2**63))
        self._woken: list[list[Woken]] = []
        """Of each tree, whom each of its updates wakes."""

    def part(self, part: _Part) -> Part:
        """Return what came of the call."""
        trees, given, shapes = part.made, self._call.trees, self._wiring.shapes
        if len(trees) > len(given) or part.failed >= len(given):
            raise MalformedAnswer("more trees than there were")
        if part.failed >= 0 and (trees or part.ended):
            raise MalformedAnswer("a tree that failed, and what came of it")
        made = [self._tree(*each) for each in zip(trees, given, strict=False)]
        ended = {(each.node, each.kind): self._ending(each) for each in part.ended}
        emitted = {node: each.times for (node, kind), each in ended.items() if kind == "emitted"}
        wakes = sum([len(each.by_number) for tree in self._woken for each in tree])
        if (
            len(ended) != len(part.ended)
            or sum([each.times for each in ended.values()]) != wakes
            or emitted != Counter([each.node for tree in made for each in tree])
        ):
            raise MalformedAnswer("other counts than wakes and updates")
        ticks = {
            node: min(milliseconds, MAX_TICKS)
            for node, milliseconds in part.ticks
            if milliseconds > 0 and node < len(shapes) and shapes[node]
        }
        return Part(made, list(ended.values()), ticks, part.failed)

    def _tree(self, rows: Sequence[_Row], tree: Tree) -> list[Made]:
        """Return what a tree made."""
        hops, computations = self._call.bounds
        if len(rows) > computations:
            raise MalformedAnswer("more updates than computations")
        wiring, refused, lasts = self._wiring, self._call.refused, self._lasts
        highest = max([self._highest, *[each.timestamp for each in tree]])
        self._highest = highest = highest + wiring.step * len(rows)
        woken = [_woken(each, wiring) for each in tree]
        self._woken.append(woken)
        times = [each.timestamp for each in tree]
        paths = [each.path for each in tree]
        made: list[Made] = []
        coming, before = 0, (0, ROOT)
        for row in rows:
            parent, wake, node, timestamp = row.parent, row.wake, row.node, row.timestamp
            if parent >= len(woken) or woken[parent].by_number.get(wake) != node:
                raise MalformedAnswer("an update of a stream that was not woken")
            path = (*paths[parent], wake)
            place = len(path), path
            if place <= before or place[0] > hops:
                raise MalformedAnswer("an update twice, too deep, or in another order")
            before = place
            while coming < len(tree) and (len(paths[coming]), paths[coming]) < place:
                self._put(tree[coming])
                coming += 1
            last = lasts.get(node)
            if not times[parent] <= timestamp <= highest or (
                last is not None and timestamp <= last
            ):
                raise MalformedAnswer("not a time that follows from the inputs")
            lasts[node] = timestamp
            if refused and node in refused:
                raise MalformedAnswer("an update of a program that does not run")
            made.append(Made(parent, wake, node, timestamp, *self._output(row)))
            is_step = parent < len(tree) and tree[parent].only is not None
            woken.append(NOBODY if is_step else wiring.woken[node])
            times.append(timestamp)
            paths.append(path)
        for event in tree[coming:]:
            self._put(event)
        return made

    def _put(self, event: Event) -> None:
        """Note an update from outside; an older one is not its stream's last."""
        last = self._lasts.get(event.node)
        if last is None or event.timestamp > last:
            self._lasts[event.node] = event.timestamp

    def _output(self, row: _Row) -> tuple[bytes, bytes | None]:
        """Return the document and the state of a new update; its document is looked at later."""
        node, state = row.node, row.state
        shape = self._wiring.shapes[node]
        if shape is None:
            raise MalformedAnswer("an update of a stream that is only read")
        some = self._outputs.get(shape)
        if some is None:
            some = self._outputs[shape] = [], []
        some[0].append(row.document)
        some[1].append(row.timestamp)
        if self._wiring.by_input[node] != (state is not NO_STATE):
            raise MalformedAnswer("a state where there is none, or none")
        return bytes(row.document), None if state is NO_STATE else _state(state)

    def _ending(self, ending: _Ending) -> Ended:
        """Return how computations ended."""
        node, kind, tree, inputs = ending.node, ending.kind, ending.tree, ending.inputs
        wiring = self._wiring
        if tree >= len(self._woken) or ending.parent >= len(self._woken[tree]):
            raise MalformedAnswer("an ending of nothing")
        if node not in self._woken[tree][ending.parent].composites:
            raise MalformedAnswer("an ending of a stream that was not woken")
        if (None if inputs is None else len(inputs)) != (
            None if kind in DID_NOT_RUN else wiring.inputs[node]
        ):
            raise MalformedAnswer("not the inputs of the composite")
        refusal = self._call.refused.get(node)
        can_be = CAME if refusal is None else {refusal[0], "missing"}
        if kind not in DID_NOT_RUN and kind not in can_be:
            raise MalformedAnswer("an ending that cannot be")
        message = clipped(ending.message)
        return Ended(node, kind, ending.times, tree, ending.parent, message, inputs)


def _woken(event: Event, wiring: Known) -> Woken:
    """Return whom an update from outside wakes: all of its stream's, or the one of a step."""
    woken = wiring.woken[event.node]
    if event.only is None:
        return woken
    node = woken.by_number[event.only]
    return Woken({event.only: node}, (node,))


def _state(raw: msgspec.Raw) -> bytes:
    """Return what the composite gets next time."""
    state = bytes(raw)
    if len(state) > MAX_STATE_BYTES or not is_one_line(state):
        raise MalformedAnswer("a state that cannot be")
    try:
        _decode_state(state)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedAnswer("a state of another shape") from error
    return state
