"""Grows trees one computation at a time, whoever computes which.

The serial law itself, as plainly as in `sandbox/trees.py`. It is for what no evaluator can
grow whole: knots of several tenants or evaluators, trees whose code ends a process, and
trees whose limits or outcomes somebody has to watch.
"""

from __future__ import annotations

import time
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol, TypeAlias

from pipeline.evaluators.steps import Lasts, Outcome, decided_here, step
from sandbox.trees import Bounds, Call, Ended, Event, Grown, Last, Made, Path, Wake
from servioticy.domain.timing import becomes_last
from servioticy.domain.verdicts import HOP_LIMIT, SUPERSEDED

TRIALS = 20
"""Of a tree in which composites settle whose arrivals are not known beforehand."""

Ask: TypeAlias = Callable[[int, Call], Grown]
"""Has one computation done: of the composite with this number, by whoever computes it."""

Refusal: TypeAlias = tuple[str, str]
"""Verdict and message."""

UNTOLD: Refusal = "", ""
"""It is refused, and nobody is told."""


class TooMuch(Exception):
    """A tree makes more than it may."""


class Watch(Protocol):
    """Whoever watches a tree while it grows; composites by their numbers."""

    sees_all: bool
    """Whether what arrives is known only as the tree grows, as it may be refused."""

    def begin(self, tree: int) -> None:
        """The tree with this number begins; where it begins again, all of it counts anew."""

    def arrives(self, node: int, path: Path) -> Refusal | None:
        """Why what arrives does not count as a computation, if so. Raises TooMuch."""

    def refuses(self, node: int, path: Path) -> Refusal | None:
        """Why a computation that counts does not run, if so."""

    def decides(self, node: int, path: Path, outcome: Outcome, seconds: float) -> Outcome:
        """What counts as the outcome, which took so many seconds. Raises TooMuch."""


class Bounded:
    """A watch that only looks after the bounds of its call."""

    sees_all = False

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._computations = 0

    def begin(self, _tree: int) -> None:
        """Count anew."""
        self._computations = 0

    def arrives(self, _node: int, path: Path) -> Refusal | None:
        """Too deep, if it is."""
        if len(path) > self._bounds.hops:
            return too_deep(self._bounds.hops)
        self._computations += 1
        if self._computations > self._bounds.computations:
            raise TooMuch
        return None

    def refuses(self, _node: int, _path: Path) -> Refusal | None:
        """All run."""
        return None

    def decides(self, _node: int, _path: Path, outcome: Outcome, _seconds: float) -> Outcome:
        """What came out counts."""
        return outcome


def too_deep(hops: int) -> Refusal:
    """The end of a computation that is more than so many composites deep in its tree."""
    return HOP_LIMIT, f"more than {hops} hops"


class Stepwise:
    """Grows the trees of one call."""

    def __init__(self, call: Call, ask: Ask, watch: Watch) -> None:
        self.call = call
        self.nodes = call.wiring.nodes
        self.watch = watch
        self.lasts: Lasts = {each.node: each for each in call.lasts}
        self._ask = ask
        self._known: dict[object, tuple[Outcome, float]] = {}

    def grow(self) -> Grown:
        """All trees; or those before the first that makes too much, with `failed`."""
        made: list[list[Made]] = []
        endings = Endings()
        for number, events in enumerate(self.call.trees):
            try:
                tree = self._tree(number, events)
            except TooMuch:
                return Grown(made, endings.all(), failed=True)
            made.append(tree.made)
            for each in tree.ended:
                endings.add(each)
            self.lasts.update(tree.lasts)
        return Grown(made, endings.all())

    def outcome(
        self, node: int, event: Event, wake: Wake, lasts: Mapping[int, Last]
    ) -> tuple[Outcome, float]:
        """What comes of one computation, and the seconds that it took; asked for once a tree."""
        found = decided_here(self.nodes[node], lasts.get(node), event)
        if found is not None:
            return found, 0.0
        asked = step(self.call, node, event, wake, lasts)
        key = node, event.path, wake.number, tuple(asked.lasts)
        if key not in self._known:
            began = time.monotonic()
            grown = self._ask(node, asked)
            self._known[key] = Outcome.of(grown), time.monotonic() - began
        return self._known[key]

    def _tree(self, number: int, events: Iterable[Event]) -> _Tree:
        """Let the tree grow; where composites settle, until it is known which path comes last."""
        self._known.clear()
        events = list(events)
        superseded = frozenset() if self.watch.sees_all else self._superseded(events)
        for _ in range(TRIALS):
            self.watch.begin(number)
            tree = _Tree(self, number, events, superseded)
            tree.grow()
            earlier = _all_but_last(tree.arrived)
            if earlier == superseded:
                break
            superseded = earlier
        return tree

    def _superseded(self, events: Iterable[Event]) -> frozenset[Path]:
        """The paths of the events that others to the same composite follow."""
        arrived: dict[int, list[Path]] = {}
        for event in events:
            for wake in self.nodes[event.node].wakes if event.only is None else ():
                if self.nodes[wake.node].settles and len(event.path) < self.call.bounds.hops:
                    arrived.setdefault(wake.node, []).append((*event.path, wake.number))
        return _all_but_last({node: sorted(paths, key=_place) for node, paths in arrived.items()})


class _Arrival(NamedTuple):
    """An update of the tree reaches a composite."""

    parent: int
    wake: Wake


class _Tree:
    """One tree while it grows: what becomes of each place, in the serial order."""

    def __init__(
        self, stepwise: Stepwise, number: int, events: list[Event], superseded: frozenset[Path]
    ) -> None:
        self._by = stepwise
        self._number = number
        self._updates = list(events)
        self._superseded = superseded
        self._waiting: list[tuple[int, Path, _Arrival | int]] = [
            (len(event.path), event.path, at) for at, event in enumerate(events)
        ]
        heapify(self._waiting)
        self.lasts: Lasts = {}
        """Those that the tree changes."""
        self._known = ChainMap(self.lasts, stepwise.lasts)
        self.made: list[Made] = []
        self.ended: list[Ended] = []
        self.arrived: dict[int, list[Path]] = {}
        """The paths to composites that settle, in order."""

    def grow(self) -> None:
        while self._waiting:
            _depth, path, what = heappop(self._waiting)
            if isinstance(what, _Arrival):
                self._arrive(what, path)
            else:
                self._becomes(what, None)

    def _arrive(self, arrival: _Arrival, path: Path) -> None:
        node, watch = arrival.wake.node, self._by.watch
        refusal = watch.arrives(node, path)
        if refusal is None and self._by.nodes[node].settles:
            self.arrived.setdefault(node, []).append(path)
            if path in self._superseded:
                refusal = SUPERSEDED, "a later path of the same tree computes"
        if refusal is None:
            refusal = watch.refuses(node, path)
        if refusal is not None:
            if refusal != UNTOLD:
                self._end(arrival, Outcome(None, *refusal))
            return
        trigger = self._updates[arrival.parent]
        found, seconds = self._by.outcome(node, trigger, arrival.wake, self._known)
        outcome = watch.decides(node, path, found, seconds)
        self._end(arrival, outcome)
        if outcome.made is not None:
            made = outcome.made._replace(
                parent=arrival.parent, wake=arrival.wake.number, node=node
            )
            self.made.append(made)
            self._updates.append(Event(node, made.timestamp, made.document, path))
            self._becomes(len(self._updates) - 1, made.state)

    def _becomes(self, number: int, state: bytes | None) -> None:
        """An update is its stream's last one from here on, if not older, and wakes others."""
        event = self._updates[number]
        last = self._known.get(event.node)
        if becomes_last(event.timestamp, last and last.timestamp):
            kept = state if state is not None else last and last.state
            self.lasts[event.node] = Last(event.node, event.timestamp, event.document, kept)
        for wake in self._by.nodes[event.node].wakes:
            if event.only is None or event.only == wake.number:
                path = (*event.path, wake.number)
                heappush(self._waiting, (len(path), path, _Arrival(number, wake)))

    def _end(self, arrival: _Arrival, outcome: Outcome) -> None:
        _made, kind, message, inputs = outcome
        node, parent = arrival.wake.node, arrival.parent
        self.ended.append(Ended(node, kind, 1, self._number, parent, message, inputs))


class Endings:
    """How computations ended: one of each composite and kind."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, str], Ended] = {}

    def add(self, ended: Ended) -> None:
        """Note one that comes after those before."""
        key = ended.node, ended.kind
        before = self._last.get(key)
        times = ended.times + (before.times if before else 0)
        self._last[key] = ended._replace(times=times)

    def all(self) -> list[Ended]:
        """All of them."""
        return list(self._last.values())


def _all_but_last(arrived: dict[int, list[Path]]) -> frozenset[Path]:
    return frozenset(path for paths in arrived.values() for path in paths[:-1])


def _place(path: Path) -> tuple[int, Path]:
    return len(path), path
