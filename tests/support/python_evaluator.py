"""What an evaluator promises (sandbox/trees.py), written once more and as plainly as possible.

It computes composites by Python functions, and shares no code with the engine or with the
sandbox: so it serves the engine's laws as an evaluator, and the sandbox's as a reference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sandbox.trees import Call, Ended, Event, Grown, Made


class Fault(Exception):
    """A computation ends without a value: by this kind of verdict, and with this message."""

    def __init__(self, kind: str, message: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class Trigger(NamedTuple):
    """What a computation is given beside its inputs."""

    name: str
    """Of the composite's code."""
    argument: int
    timestamp: int


Compute = Callable[[Trigger, list[bytes | None]], object]
"""The new value, or None: the documents of the inputs."""


class PythonEvaluator:
    """Grows trees; `compute` is the code of all composites."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self.asked: list[tuple[str, Sequence[Call], float | None]] = []

    def evaluate(
        self, tenant: str, calls: Sequence[Call], within: float | None = None
    ) -> list[Grown]:
        self.asked.append((tenant, calls, within))
        return [_Region(call, self._compute).grow() for call in calls]

    grow = evaluate


class _TooMuch(Exception):
    pass


class _Region:
    def __init__(self, call: Call, compute: Compute) -> None:
        self.call, self.nodes, self.compute = call, call.wiring.nodes, compute
        self.last = {each.node: (each.timestamp, each.document) for each in call.lasts}
        self.states = {each.node: each.state for each in call.lasts if each.state is not None}
        self.ended: dict[tuple[int, str], Ended] = {}

    def grow(self) -> Grown:
        made = []
        for number, tree in enumerate(self.call.trees):
            before = dict(self.last), dict(self.states), dict(self.ended)
            try:
                made.append(self.tree(number, list(tree)))
            except _TooMuch:
                self.last, self.states, self.ended = before
                return Grown(made, list(self.ended.values()), failed=True)
        return Grown(made, list(self.ended.values()))

    def tree(self, number: int, events: list[Event]) -> list[Made]:
        """Depth by depth: what happens at each place of a depth, in order of path."""
        updates = [(event.node, event.timestamp, event.document, event.path) for event in events]
        made: list[Made] = []
        only = {at: event.only for at, event in enumerate(events)}
        settling = self.settling(events)
        count, depth = 0, 0
        arrivals: list[tuple[tuple[int, ...], int, object]] = []
        while arrivals or any(len(event.path) >= depth for event in events):
            happens = [
                (event.path, at, None)
                for at, event in enumerate(events)
                if len(event.path) == depth
            ] + arrivals
            arrivals = []
            for path, parent, wake in sorted(happens, key=lambda each: each[0]):
                new = parent
                if wake is not None:
                    if len(path) > self.call.bounds.hops:
                        hops = f"more than {self.call.bounds.hops} hops"
                        self.end(number, wake.node, "hop-limit", parent, hops)
                        continue
                    count += 1
                    if count > self.call.bounds.computations:
                        raise _TooMuch
                    if wake.node in settling and settling[wake.node] != path:
                        later = "a later path of the same tree computes"
                        self.end(number, wake.node, "superseded", parent, later)
                        continue
                    found = self.computed(number, parent, wake, updates[parent])
                    if found is None:
                        continue
                    timestamp, document, state = found
                    new = len(updates)
                    updates.append((wake.node, timestamp, document, path))
                    made.append(Made(parent, wake.number, wake.node, timestamp, document, state))
                    if state is not None:
                        self.states[wake.node] = state
                node, timestamp, document, _path = updates[new]
                if node not in self.last or timestamp >= self.last[node][0]:
                    self.last[node] = timestamp, document
                for each in self.nodes[node].wakes:
                    if only.get(new) in (None, each.number):
                        arrivals.append(((*path, each.number), new, each))
            depth += 1
        return made

    def settling(self, events: list[Event]) -> dict[int, tuple[int, ...]]:
        """Of each composite that settles, the path that comes last."""
        paths: dict[int, list[tuple[int, ...]]] = {}
        for event in events:
            for wake in self.nodes[event.node].wakes:
                path = (*event.path, wake.number)
                fits = event.only is None and len(path) <= self.call.bounds.hops
                if self.nodes[wake.node].settles and fits:
                    paths.setdefault(wake.node, []).append(path)
        return {
            node: max(found, key=lambda path: (len(path), path)) for node, found in paths.items()
        }

    def computed(self, number, parent, wake, trigger):
        node, (origin, timestamp, document, _path) = self.nodes[wake.node], trigger
        own = self.last.get(wake.node)
        values = []  # stream, timestamp, document
        for argument, members in enumerate(node.inputs):
            if argument == wake.argument:
                values.append((origin, timestamp, document))
                continue
            best = None
            for member in members:
                last = self.last.get(member)
                if last is not None and (best is None or last[0] > best[1]):
                    best = (member, *last)
            values.append(best)
        times = [each and each[1] for each in values]
        others = [each for argument, each in enumerate(values) if argument != node.own]
        if node.skips and None in others:
            return self.end(
                number, wake.node, "missing", parent, "an input has no update yet", times
            )
        uses = json.loads(self.states.get(wake.node, b"{}"))
        if node.by_input:
            used = uses.get(self.nodes[origin].name)
            if used is not None and timestamp <= int(used):
                why = f"trigger {timestamp} is not newer than {used}, last used of this input"
                return self.end(number, wake.node, "stale", parent, why)
        elif own is not None and timestamp <= own[0]:
            why = f"trigger {timestamp} is not newer than output {own[0]}"
            return self.end(number, wake.node, "stale", parent, why)
        if wake.node in self.call.refused:
            kind, why = self.call.refused[wake.node]
            return self.end(number, wake.node, kind, parent, why, times)
        about = Trigger(self.call.names[wake.node], wake.argument, timestamp)
        try:
            value = self.compute(about, [each and each[2] for each in values])
        except Fault as fault:
            return self.end(number, wake.node, fault.kind, parent, str(fault), times)
        if value is None:
            return self.end(number, wake.node, "filtered", parent, "", times)
        self.end(number, wake.node, "emitted", parent, "", times)
        at = timestamp
        state = None
        if node.by_input:
            if own is not None:
                at = max(at, own[0] + 1)
            for member, used, _document in (each for each in others if each is not None):
                name = self.nodes[member].name
                uses[name] = max(int(uses.get(name, used)), used)
            state = json.dumps(
                {name: at if abs(at) < 2**53 else str(at) for name, at in uses.items()},
                separators=(",", ":"),
            ).encode()
        at = max([at, *(each[1] for each in others if each), *([own[0]] if own else [])])
        text = json.dumps({"channels": {"v": {"current-value": value}}, "lastUpdate": at})
        return at, text.replace(" ", "").encode(), state

    def end(self, number, node, kind, parent, message="", inputs=None) -> None:
        before = self.ended.get((node, kind))
        count = 1 + (before.times if before else 0)
        self.ended[node, kind] = Ended(node, kind, count, number, parent, message, inputs)
