"""What a worker says that its trees made, believed only as far as it fits the question.

It may lie about its tenant's values. But streams have to be of the region, woken by what the
answer says and in that order, at most once each and within the bounds; times may only advance,
and stay among those that went in; every output is of its program's shape; every wake has ended
in one way, and the first tree has been grown. A result is a revision where its windows say so,
and no other one. Anything else is MalformedAnswer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, NamedTuple, cast

import msgspec

from sandbox.host.answers import MalformedAnswer, clipped
from sandbox.host.outputs import Shape, is_one_line, shape_of
from sandbox.revisions import Revision, revision_of, without_revision
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
    """What is looked up again and again of a wiring, worked out when it is first met.

    A region may have a hundred thousand streams, of which a batch meets a few. What has no
    such number raises IndexError.
    """

    def __init__(self, wiring: Wiring) -> None:
        self.nodes = wiring.nodes
        self.woken = _Woken(wiring)
        """Whom an update of each stream wakes."""
        self.shapes = _Shapes(wiring)
        """What the outputs of each composite look like; None for streams that are only read."""
        self.step = int(any(each.by_input for each in wiring.nodes))
        """By how much an output may be newer than all that went in: who goes by its inputs
        makes one a tick newer than its last."""


class _Woken(dict[int, Woken]):
    def __init__(self, wiring: Wiring) -> None:
        self._nodes = wiring.nodes

    def __missing__(self, number: int) -> Woken:
        wakes = self._nodes[number].wakes
        found = self[number] = Woken({w.number: w.node for w in wakes}, {w.node for w in wakes})
        return found


class _Shapes(dict[int, Shape | None]):
    def __init__(self, wiring: Wiring) -> None:
        self._nodes = wiring.nodes

    def __missing__(self, number: int) -> Shape | None:
        code = self._nodes[number].code
        found = self[number] = None if code is None else shape_of(code)
        return found


_decode = msgspec.json.Decoder(list[_Part]).decode
_decode_state = msgspec.json.Decoder(State).decode


Output = tuple[list[msgspec.Raw], list[int]]
Outputs = dict[Shape, Output]
"""The documents and times of new updates by their shape: they are looked at together."""

_made = cast(Callable[..., Made], tuple.__new__)
_ended = cast(Callable[..., Ended], tuple.__new__)
"""A third of what it takes to call the class."""


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
    try:
        found = [
            _Reading(call, wiring, outputs).part(part)
            for part, call, wiring in zip(parts, calls, wirings, strict=True)
        ]
    except IndexError as error:
        raise MalformedAnswer("a number of nothing") from error
    for shape, (documents, timestamps) in outputs.items():
        shape.check(documents, timestamps)
    return found


class _Reading:
    """Reads the answer to one call. Raises IndexError where a number is too large."""

    __slots__ = (
        "_call",
        "_counts",
        "_highest",
        "_lasts",
        "_outputs",
        "_wakes",
        "_wiring",
        "_woken",
    )

    def __init__(self, call: Call, wiring: Known, outputs: Outputs) -> None:
        self._call, self._wiring, self._outputs = call, wiring, outputs
        self._lasts = {each.node: each.timestamp for each in call.lasts}
        self._highest = max(self._lasts.values(), default=-(2**63))
        self._woken: list[list[Woken]] = []
        """Of each tree, whom each of its updates wakes."""
        self._wakes = 0
        """How many wakes there are in all."""
        self._counts: dict[int, int] = {}
        """How many updates of each composite there are."""

    def part(self, part: _Part) -> Part:
        """Return what came of the call."""
        trees, given = part.made, self._call.trees
        if len(trees) > len(given) or part.failed >= len(given):
            raise MalformedAnswer("more trees than there were")
        if part.failed >= 0 and (trees or part.ended):
            raise MalformedAnswer("a tree that failed, and what came of it")
        made = [self._tree(rows, tree) for rows, tree in zip(trees, given, strict=False)]
        ended: list[Ended] = []
        kinds: set[tuple[int, str]] = set()
        emitted: dict[int, int] = {}
        computations = 0
        for ending in part.ended:
            ended.append(self._ending(ending))
            kinds.add((ending.node, ending.kind))
            computations += ending.times
            if ending.kind == "emitted":
                emitted[ending.node] = ending.times
        if len(kinds) != len(ended) or computations != self._wakes or emitted != self._counts:
            raise MalformedAnswer("other counts than wakes and updates")
        return Part(made, ended, self._ticks(part.ticks) if part.ticks else {}, part.failed)

    def _tree(self, rows: Sequence[_Row], tree: Tree) -> list[Made]:
        """Return what a tree made."""
        if len(rows) > self._call.bounds.computations:
            raise MalformedAnswer("more updates than computations")
        highest = self._highest
        for event in tree:
            highest = max(highest, event.timestamp)
        self._highest = highest = highest + self._wiring.step * len(rows)
        if len(tree) == 1:
            return self._tree_of_one(rows, tree[0], highest)
        return self._tree_of_many(rows, tree, highest)

    def _tree_of_one(self, rows: Sequence[_Row], event: Event, highest: int) -> list[Made]:
        """Return what the tree of one event made: most are.

        Parents come in order of their places, so parent and wake say the order of what they
        make.
        """
        self._put(event)
        by_node, most = self._wiring.woken, self._call.bounds.hops
        first = _woken(event, self._wiring)
        is_step = event.only is not None
        woken, times, depths = [first], [event.timestamp], [len(event.path)]
        wakes = len(first.by_number)
        made: list[Made] = []
        before = -1, -1
        for row in rows:
            parent, wake, node = row.parent, row.wake, row.node
            at = parent, wake
            depth = depths[parent] + 1
            if at <= before or depth > most:
                raise MalformedAnswer("an update twice, too deep, or in another order")
            before = at
            revision = self._revision(node, event) if parent == 0 else None
            made.append(self._update(row, woken[parent], times[parent], highest, revision))
            following = NOBODY if is_step or revision else by_node[node]
            woken.append(following)
            wakes += len(following.by_number)
            times.append(row.timestamp)
            depths.append(depth)
        self._woken.append(woken)
        self._wakes += wakes
        return made

    def _tree_of_many(self, rows: Sequence[_Row], tree: Tree, highest: int) -> list[Made]:
        """Return what a tree of several events made; they have to be taken at their places."""
        woken = [_woken(each, self._wiring) for each in tree]
        times = [each.timestamp for each in tree]
        paths = [each.path for each in tree]
        made: list[Made] = []
        coming, before = 0, (0, ROOT)
        for row in rows:
            parent = row.parent
            path = (*paths[parent], row.wake)
            place = len(path), path
            if place <= before or place[0] > self._call.bounds.hops:
                raise MalformedAnswer("an update twice, too deep, or in another order")
            before = place
            while coming < len(tree) and (len(paths[coming]), paths[coming]) < place:
                self._put(tree[coming])
                coming += 1
            event = tree[parent] if parent < len(tree) else None
            revision = None if event is None else self._revision(row.node, event)
            made.append(self._update(row, woken[parent], times[parent], highest, revision))
            is_step = event is not None and event.only is not None
            woken.append(NOBODY if is_step or revision else self._wiring.woken[row.node])
            times.append(row.timestamp)
            paths.append(path)
        for event in tree[coming:]:
            self._put(event)
        self._woken.append(woken)
        self._wakes += sum([len(each.by_number) for each in woken])
        return made

    def _revision(self, node: int, event: Event) -> Revision | None:
        """Return which revision an output has to be that an event has made."""
        nodes = self._wiring.nodes
        comes = nodes[node].windowed or nodes[event.node].brings
        return revision_of(event.document) if comes else None

    def _update(
        self, row: _Row, woken: Woken, trigger: int, highest: int, revision: Revision | None
    ) -> Made:
        """Return a new update; its document is looked at later, with others."""
        wake, node, timestamp, document = row.wake, row.node, row.timestamp, row.document
        if woken.by_number.get(wake) != node:
            raise MalformedAnswer("an update of a stream that was not woken")
        lasts, counts = self._lasts, self._counts
        last = lasts.get(node)
        if revision is not None:
            if timestamp != trigger or revision_of(bytes(document)) != revision:
                raise MalformedAnswer("another revision, or of another time")
            document = msgspec.Raw(without_revision(bytes(document)))
        elif not trigger <= timestamp <= highest or (last is not None and timestamp <= last):
            raise MalformedAnswer("not a time that follows from the inputs")
        if revision is None or (revision.is_kept and (last is None or timestamp >= last)):
            lasts[node] = timestamp
        counts[node] = counts.get(node, 0) + 1
        if self._call.refused and node in self._call.refused:
            raise MalformedAnswer("an update of a program that does not run")
        shape = self._wiring.shapes[node]
        if shape is None:
            raise MalformedAnswer("an update of a stream that is only read")
        output = self._outputs.get(shape)
        if output is None:
            output = self._outputs[shape] = [], []
        output[0].append(document)
        output[1].append(timestamp)
        state = None
        if (self._wiring.nodes[node].by_input and not revision) or row.state is not NO_STATE:
            state = self._state(row)
        return _made(Made, (row.parent, wake, node, timestamp, bytes(row.document), state, None))

    def _state(self, row: _Row) -> bytes:
        """Return what the composite gets next time."""
        state = bytes(row.state)
        if not self._wiring.nodes[row.node].by_input:
            raise MalformedAnswer("a state where there is none")
        if len(state) > MAX_STATE_BYTES or not is_one_line(state):
            raise MalformedAnswer("a state that cannot be")
        try:
            _decode_state(state)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise MalformedAnswer("a state of another shape") from error
        return state

    def _put(self, event: Event) -> None:
        """Note an update from outside; an older one is not its stream's last."""
        last = self._lasts.get(event.node)
        if last is None or event.timestamp > last:
            self._lasts[event.node] = event.timestamp

    def _ending(self, ending: _Ending) -> Ended:
        """Return how computations ended."""
        node, kind, tree, parent = ending.node, ending.kind, ending.tree, ending.parent
        inputs, message = ending.inputs, ending.message
        if node not in self._woken[tree][parent].composites:
            raise MalformedAnswer("an ending of a stream that was not woken")
        if inputs is not None and len(inputs) != len(self._wiring.nodes[node].inputs):
            raise MalformedAnswer("not the inputs of the composite")
        if kind in DID_NOT_RUN:
            if inputs is not None:
                raise MalformedAnswer("inputs of a computation that did not run")
        elif node in self._call.refused:
            if kind not in (self._call.refused[node][0], "missing"):
                raise MalformedAnswer("an ending of a program that does not run")
        elif kind not in CAME:
            raise MalformedAnswer("an ending that cannot be")
        if message:
            message = clipped(message)
        return _ended(Ended, (node, kind, ending.times, tree, parent, message, inputs))

    def _ticks(self, ticks: Sequence[tuple[int, int]]) -> dict[int, int]:
        """Return the milliseconds that can be, of composites."""
        shapes, count = self._wiring.shapes, len(self._wiring.nodes)
        return {
            node: min(milliseconds, MAX_TICKS)
            for node, milliseconds in ticks
            if milliseconds > 0 and node < count and shapes[node]
        }


def _woken(event: Event, wiring: Known) -> Woken:
    """Return whom an update from outside wakes: all of its stream's, or the one of a step."""
    woken = wiring.woken[event.node]
    if event.only is None:
        return woken
    node = woken.by_number.get(event.only)
    return NOBODY if node is None else Woken({event.only: node}, (node,))
