"""The contract of sandbox/trees.py once more, as plainly as possible: an evaluator in Python.

It shares no code with the sandbox or the pipeline. Everything that happens in a tree has a
place: the path of an update. What is known to happen waits in a heap, and the first place is
taken next; so nothing here depends on how updates are queued.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple

from sandbox.trees import FOLLOWS, Call, Ended, Event, Grown, Last, Made, Node, Path, Tree

Place = tuple[int, Path]
"""Depth and path: their order is the order in which a tree happens."""

LATEST = 2**63 - 1
"""The last timestamp there is."""


class Ends(Exception):
    """The code makes no update, as `kind` says."""

    def __init__(self, kind: str, message: str = "") -> None:
        super().__init__(kind, message)
        self.kind, self.message = kind, message


@dataclass(frozen=True)
class Update:
    """An update of a stream of the region; `number` is its own in its tree, as in Made."""

    node: int
    timestamp: int
    document: bytes
    number: int = -1
    path: Path = ()
    only: int | None = None


class Computation(NamedTuple):
    """What the code of a composite is given."""

    node: int
    wake: int
    argument: int
    """Through which of its inputs it was woken."""
    trigger: Update
    timestamp: int
    """Of the trigger, as its clock shows it."""
    inputs: Sequence[Update | None]
    last: Update | None
    """The composite's last output, whether it is an input or not."""
    uses: Mapping[str, int] | None
    """Its state: by the names of streams what was last used of each."""


Code = Callable[[Computation], Any]
"""Makes the channels of the new update, or raises Ends."""


class PlainTrees:
    """Answers calls whose codes are Python functions, as a SandboxPool does those of programs."""

    def grow(
        self,
        tenant: str,
        calls: Sequence[Call],
        within: float | None = None,
        *,
        beside: bool = False,
    ) -> list[Grown]:
        return [grow(each) for each in calls]


def grow(call: Call) -> Grown:
    """Return what comes of the trees before the first that has too many computations."""
    region = _Region(call)
    made: list[list[Made]] = []
    for number, tree in enumerate(call.trees):
        growing = _Growing(region, number)
        if not growing.grows(tree):
            break
        made.append(growing.made)
        region.ended = growing.ended
    failed = not made and bool(call.trees)
    return Grown(made, list(region.ended.values()), failed)


class _Region:
    """What a call has come to: every stream's last update, and how computations ended."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.nodes: Sequence[Node] = call.wiring.nodes
        self.lasts: dict[int, Update] = {}
        self.uses: dict[int, dict[str, int]] = {}
        self.ended: dict[tuple[int, str], Ended] = {}
        for node, timestamp, document, state in call.lasts:
            self.lasts[node] = Update(node, timestamp, document or b"0")
            if state is not None:
                self.uses[node] = {name: int(at) for name, at in json.loads(state).items()}

    def newest(self, members: Sequence[int]) -> Update | None:
        """Return the newest update of a group, the first of equals."""
        found = [self.lasts[each] for each in members if each in self.lasts]
        return max(found, key=lambda each: each.timestamp, default=None)


class _Growing:
    """Grows one tree."""

    def __init__(self, region: _Region, number: int) -> None:
        self._region, self._number = region, number
        self._bounds = region.call.bounds
        self._waiting: list[tuple[Place, int, Any]] = []
        self._computations = 0
        self._events = 0
        self.made: list[Made] = []
        self.ended = dict(region.ended)

    def grows(self, tree: Tree) -> bool:
        """Grow it, and tell whether it kept within its bounds."""
        self._events = len(tree)
        self._settled = self._last_arrivals(tree)
        for number, event in enumerate(tree):
            self._wait(event.path, (event, number))
        while self._waiting:
            _, _, (what, more) = heappop(self._waiting)
            if isinstance(what, Event):
                self._comes(
                    Update(what.node, what.timestamp, what.document, more, what.path, what.only)
                )
            elif not self._woken(what, more):
                return False
        return True

    def _wait(self, path: Path, what: tuple[Any, Any]) -> None:
        heappush(self._waiting, ((len(path), path), len(self._waiting), what))

    def _comes(self, update: Update) -> None:
        """Let an update happen: it is its stream's last one unless that is newer, and wakes."""
        lasts = self._region.lasts
        before = lasts.get(update.node)
        if before is None or update.timestamp >= before.timestamp:
            lasts[update.node] = update
        for wake in self._region.nodes[update.node].wakes:
            if update.only is None or wake.number == update.only:
                self._wait((*update.path, wake.number), (update, wake))

    def _last_arrivals(self, tree: Tree) -> Mapping[int, Place]:
        """Return at which place each composite computes that settles."""
        nodes = self._region.nodes
        found: dict[int, Place] = {}
        for event in tree:
            for wake in nodes[event.node].wakes:
                place = len(event.path) + 1, (*event.path, wake.number)
                if event.only is None and place[0] <= self._bounds.hops:
                    found[wake.node] = max(place, found.get(wake.node, place))
        return {node: place for node, place in found.items() if nodes[node].settles}

    def _woken(self, trigger: Update, wake: Any) -> bool:
        """Let a composite compute, and tell whether the tree keeps within its bounds."""
        path = (*trigger.path, wake.number)
        if len(path) > self._bounds.hops:
            hops = f"more than {self._bounds.hops} hops"
            self._end(wake.node, "hop-limit", trigger, message=hops)
            return True
        self._computations += 1
        if self._computations > self._bounds.computations:
            return False
        if self._settled.get(wake.node, (len(path), path)) != (len(path), path):
            later = "a later path of the same tree computes"
            self._end(wake.node, "superseded", trigger, message=later)
            return True
        computation = self._computation(trigger, wake)
        times = [each and each.timestamp for each in computation.inputs]
        try:
            self._check(computation)
            output, state = self._output(computation, path)
        except Ends as ends:
            came = ends.kind != "stale"
            self._end(wake.node, ends.kind, trigger, times if came else None, ends.message)
            return True
        self._end(wake.node, "emitted", trigger, times)
        parent, number, node = trigger.number, wake.number, wake.node
        self.made.append(Made(parent, number, node, output.timestamp, output.document, state))
        revision = self._revision(trigger, wake.node)
        if revision:
            before = self._region.lasts.get(node)
            is_older = before is not None and output.timestamp < before.timestamp
            if not is_older and "early" not in revision:
                self._region.lasts[node] = output
            return True
        self._region.lasts[node] = output
        if trigger.only is None:  # of a step nothing follows
            self._comes(output)
        return True

    def _revision(self, trigger: Update, node: int) -> dict[str, Any]:
        """What is said of windows that have not ended, or come out once more."""
        nodes = self._region.nodes
        if not (nodes[node].windowed or nodes[trigger.node].brings):
            return {}
        said = json.loads(trigger.document)
        return {key: said[key] for key in ("revision", "early", "retracted") if key in said}

    def _computation(self, trigger: Update, wake: Any) -> Computation:
        region, node = self._region, self._region.nodes[wake.node]
        inputs = [
            trigger
            if number == wake.argument
            or ((node.windowed or wake.argument == FOLLOWS) and number != node.own)
            else region.newest(members)
            for number, members in enumerate(node.inputs)
        ]
        last, timestamp = region.lasts.get(wake.node), trigger.timestamp
        if node.by_input and last is not None and not self._revision(trigger, wake.node):
            timestamp = max(timestamp, last.timestamp + 1)
        uses = region.uses.get(wake.node)
        return Computation(
            wake.node, wake.number, wake.argument, trigger, timestamp, inputs, last, uses
        )

    def _check(self, computation: Computation) -> None:
        """Raise Ends where the code is not run."""
        region, node = self._region, self._region.nodes[computation.node]
        others = [each for n, each in enumerate(computation.inputs) if n != node.own]
        if node.skips and None in others:
            raise Ends("missing", "an input has no update yet")
        trigger, last = computation.trigger, computation.last
        bound, what = last and last.timestamp, f"output {last and last.timestamp}"
        if node.by_input:
            bound = (computation.uses or {}).get(region.nodes[trigger.node].name)
            what = f"{bound}, last used of this input"
        is_revision = bool(self._revision(trigger, computation.node))
        if bound is not None and trigger.timestamp <= bound and not is_revision:
            raise Ends("stale", f"trigger {trigger.timestamp} is not newer than {what}")
        if computation.timestamp > LATEST:
            raise Ends("stale", "no timestamp is later than that of the last output")
        if computation.node in region.call.refused:
            raise Ends(*region.call.refused[computation.node])

    def _output(self, computation: Computation, path: Path) -> tuple[Update, bytes | None]:
        """Return the new update, and what goes with it into the composite's next computation."""
        node, inputs = self._region.nodes[computation.node], computation.inputs
        code: Code = node.code
        channels = code(computation)
        others = [each for n, each in enumerate(inputs) if each is not None and n != node.own]
        timestamp = max(computation.timestamp, *[each.timestamp for each in others])
        revision = self._revision(computation.trigger, computation.node)
        if computation.last is not None and not revision:
            timestamp = max(timestamp, computation.last.timestamp)
        document = json.dumps(
            {"channels": channels, "lastUpdate": timestamp} | revision, separators=(",", ":")
        ).encode()
        number = self._events + len(self.made)
        output = Update(computation.node, timestamp, document, number, path)
        uses = node.by_input and not revision
        return output, self._used(computation, others) if uses else None

    def _used(self, computation: Computation, others: Sequence[Update]) -> bytes:
        uses = dict(computation.uses or {})
        for each in others:
            name = self._region.nodes[each.node].name
            uses[name] = max(each.timestamp, uses.get(name, each.timestamp))
        self._region.uses[computation.node] = uses
        return state_of(uses)

    def _end(
        self,
        node: int,
        kind: str,
        trigger: Update,
        times: Sequence[int | None] | None = None,
        message: str = "",
    ) -> None:
        before = self.ended.get((node, kind))
        count = before.times + 1 if before else 1
        self.ended[node, kind] = Ended(
            node, kind, count, self._number, trigger.number, message, times
        )


def state_of(uses: Mapping[str, int]) -> bytes:
    """Return a state as the realm writes it: what JavaScript's numbers cannot hold are texts."""
    exact = {name: at if abs(at) < 2**53 else str(at) for name, at in uses.items()}
    return json.dumps(exact, separators=(",", ":")).encode()


def lasts_after(call: Call, grown: Grown) -> list[Last]:
    """Return every stream's last update after the trees that were grown."""
    lasts = {each.node: each for each in call.lasts}
    for tree, made in zip(call.trees, grown.made, strict=False):
        paths = [each.path for each in tree]
        happened: list[tuple[Place, Last]] = [
            ((len(e.path), e.path), Last(e.node, e.timestamp, e.document)) for e in tree
        ]
        for each in made:
            paths.append(path := (*paths[each.parent], each.wake))
            last = Last(each.node, each.timestamp, each.document, each.state)
            happened.append(((len(path), path), last))
        for _, last in sorted(happened, key=lambda each: each[0]):
            before = lasts.get(last.node)
            if before is None or last.timestamp >= before.timestamp:
                # What is put in from outside leaves the composite's state as it is.
                kept = last.state if last.state is not None else before and before.state
                lasts[last.node] = last._replace(state=kept)
    return list(lasts.values())
