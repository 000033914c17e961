"""Grows trees one computation at a time, whoever computes which.

The serial law itself, as plainly as in `sandbox/trees.py`. It is for what no evaluator can
grow whole: knots of several evaluators, trees whose code ends a process, and
trees whose limits or outcomes somebody has to watch, as those that are only tried.
"""

from __future__ import annotations

import time
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeAlias

from sandbox.revisions import revision_of
from sandbox.trees import (
    CLOCK,
    FOLLOWERS,
    FOLLOWS,
    Call,
    Ended,
    Event,
    Grown,
    Kept,
    Last,
    Made,
    Node,
    Path,
    Wake,
)
from servioticy.domain.evaluators.past import Happened, Moment
from servioticy.domain.evaluators.steps import Lasts, Outcome, decided_here, step
from servioticy.domain.timing import becomes_last
from servioticy.domain.verdicts import HOP_LIMIT, SUPERSEDED

TRIALS = 20
"""Of a tree in which composites settle whose arrivals are not known beforehand: then the last
attempt counts."""

Ask: TypeAlias = Callable[[int, int, Call], Grown]
"""Has one computation done, in the tree with this number: of the composite with this number, by
whoever computes it."""

KeptBefore: TypeAlias = Mapping[tuple[int, bytes], Kept]
"""What composites keep: by their numbers, and key."""

Refusal: TypeAlias = tuple[str, str]
"""Verdict and message."""

UNTOLD: Refusal = "", ""
"""It is refused, and nobody is told."""


class TooMuch(Exception):
    """A tree makes more than it may."""


class Stepwise:
    """Grows the trees of one call, within its bounds.

    Who has to watch more than these overrides what is asked of each computation.
    """

    knows_arrivals = True
    """Whether all that arrives at composites that settle comes into the region, and computes."""

    notes_what_happens = True
    """Whether what streams have got is remembered from tree to tree, for operators that ask what
    they had."""

    def __init__(self, call: Call, ask: Ask) -> None:
        self.call = call
        self.lasts: Lasts = {each.node: each for each in call.lasts}
        self.kept = {(each.node, each.key): each for each in call.kept}
        self._ask = ask
        self._found: dict[object, tuple[Outcome, float]] = {}
        self._tree_number = 0
        self._computations = 0
        self._attempt = 0
        """Of the tree: what an operator finds depends on what has happened in it before."""
        self._noted = Happened()
        self.so_far = self._noted
        """What streams have got in the trees so far, the one that grows too."""

    def begin(self, tree: int) -> None:
        """The tree with this number begins; where it begins again, all of it counts anew."""
        self._tree_number = tree
        self._computations = 0

    def clock(self) -> float:
        """The seconds by which it is told what a computation takes."""
        return time.monotonic()

    def arrives(self, _node: int, path: Path) -> Refusal | None:
        """Why what arrives at a composite is no computation, if so. Raises TooMuch."""
        refusal = self.too_deep(path)
        self._computations += refusal is None
        if self._computations > self.call.bounds.computations:
            raise TooMuch
        return refusal

    def too_deep(self, path: Path) -> Refusal | None:
        """The end of what is more composites deep in its tree than it may be."""
        hops = self.call.bounds.hops
        return (HOP_LIMIT, f"more than {hops} hops") if len(path) > hops else None

    def refuses(self, _node: int, _path: Path) -> Refusal | None:
        """Why a computation does not run, if so."""
        return None

    def decides(self, _node: int, _path: Path, outcome: Outcome, _seconds: float) -> Outcome:
        """What counts as the outcome, which took so many seconds. Raises TooMuch."""
        return outcome

    def grow(self) -> Grown:
        """All trees; or those before the first that makes too much, with `failed`."""
        made: list[Sequence[Made]] = []
        endings = Endings()
        changed: dict[tuple[int, bytes], Kept] = {}
        for number, events in enumerate(self.call.trees):
            try:
                tree = self.next_tree(number, events)
            except TooMuch:
                return Grown(made, endings.all(), True, list(changed.values()))
            made += tree.made
            changed.update({(each.node, each.key): each for each in tree.kept})
            for each in tree.ended:
                endings.add(each)
        return Grown(made, endings.all(), kept=list(changed.values()))

    def next_tree(self, number: int, events: Iterable[Event]) -> Grown:
        """One tree, with each of its endings; others are taken after it. Raises TooMuch."""
        tree = self._tree(number, list(events))
        self.lasts.update(tree.lasts)
        self.kept.update(tree.kept)
        if self.notes_what_happens:
            self._noted.take(self.so_far)
        return Grown([tree.made], tree.ended, kept=list(tree.kept.values()))

    def outcome(
        self, node: int, event: Event, wake: Wake, lasts: Mapping[int, Last], kept: KeptBefore
    ) -> tuple[Outcome, float]:
        """What comes of one computation, and the seconds that it took; asked for once a tree."""
        composite = self.call.wiring.nodes[node]
        found = decided_here(composite, lasts.get(node), event, wake)
        if found is not None:
            return found, 0.0
        theirs: list[Kept] = []
        if composite.keeps:
            theirs = [each for each in kept.values() if each.node == node]
        at: Sequence[int] = ()
        traces: Sequence[str] = ()
        if composite.keeps:
            own = slice(self._tree_number, self._tree_number + 1)
            at, traces = self.call.at[own], self.call.traces[own]
        moment = self.moment(event) if composite.keeps else None
        asked = step(self.call, node, event, wake, lasts, theirs, at, moment, traces)
        attempt = self._attempt if composite.keeps else 0
        key = node, event.path, wake.number, tuple(asked.lasts), tuple(theirs), attempt
        if key not in self._found:
            began = self.clock()
            grown = self._ask(self._tree_number, node, asked)
            sides = asked.wiring.nodes[0].sides
            self._found[key] = Outcome.of(grown, sides), self.clock() - began
        return self._found[key]

    def moment(self, event: Event) -> Moment:
        """What has happened by now, where this update wakes a composite."""
        return Moment(self.so_far, (self._tree_number, len(event.path), event.path))

    def happens(self, event: Event) -> None:
        """A stream has got this update."""
        name = self.call.wiring.nodes[event.node].name
        if name:
            place = self._tree_number, len(event.path), event.path
            document = b"" if _takes_back(event) else event.document
            self.so_far.note(name, event.timestamp, document, place)

    def _tree(self, number: int, events: list[Event]) -> _Tree:
        """Let the tree grow; where composites settle, until it is known which path comes last."""
        self._found.clear()
        superseded = self._superseded(events) if self.knows_arrivals else frozenset()
        for self._attempt in range(TRIALS):
            self.begin(number)
            self.so_far = Happened(self._noted)
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
        nodes = self.call.wiring.nodes
        for event in events:
            for wake in nodes[event.node].wakes if event.only is None else ():
                if nodes[wake.node].settles and len(event.path) < self.call.bounds.hops:
                    arrived.setdefault(wake.node, []).append((*event.path, wake.number))
        for paths in arrived.values():
            paths.sort(key=lambda path: (len(path), path))
        return _all_but_last(arrived)


class _Arrival(NamedTuple):
    """An update of the tree, by its number, reaches a composite."""

    parent: int
    wake: Wake


class _Tree:
    """One tree while it grows: what happens at each place, in the serial order."""

    def __init__(
        self, by: Stepwise, number: int, events: list[Event], superseded: frozenset[Path]
    ) -> None:
        self._by = by
        self._nodes = by.call.wiring.nodes
        self._number = number
        self._updates = list(events)
        self._superseded = superseded
        self._waiting: list[tuple[int, Path, _Arrival | int]] = [
            (len(event.path), event.path, at) for at, event in enumerate(events)
        ]
        heapify(self._waiting)
        self.lasts: Lasts = {}
        """Those that the tree changes."""
        self._known = ChainMap(self.lasts, by.lasts)
        self.kept: dict[tuple[int, bytes], Kept] = {}
        """What it changes of what composites keep."""
        self._keeping = ChainMap(self.kept, by.kept)
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
        parent, wake = arrival
        refusal = self._refusal(wake.node, path)
        if refusal is None:
            event = self._updates[parent]
            found, seconds = self._by.outcome(wake.node, event, wake, self._known, self._keeping)
            outcome = self._by.decides(wake.node, path, found, seconds)
            for each in outcome.kept:
                self.kept[wake.node, each.key] = each._replace(node=wake.node)
        else:
            outcome = Outcome((), *refusal)
        if refusal != UNTOLD and outcome.kind:
            self.ended.append(
                Ended(wake.node, outcome.kind, 1, self._number, parent, *outcome[2:4])
            )
        for output in outcome.made:
            node = wake.node
            if output.node:
                node = self._nodes[node].sides[output.node - 1]
            made = output._replace(parent=parent, wake=wake.number, node=node)
            self.made.append(made)
            at = path if made.nth is None else (*path, made.nth)
            may_be = self._nodes[node].windowed or wake.argument == FOLLOWS
            revision = revision_of(made.document) if may_be else None
            only = None if revision is None else FOLLOWERS
            self._updates.append(Event(node, made.timestamp, made.document, at, only))
            if revision is None or revision.is_kept:
                self._becomes(len(self._updates) - 1, made.state)

    def _refusal(self, node: int, path: Path) -> Refusal | None:
        refusal = self._by.arrives(node, path)
        if refusal is not None:
            return refusal
        if self._nodes[node].settles:
            self.arrived.setdefault(node, []).append(path)
            if path in self._superseded:
                return SUPERSEDED, "a later path of the same tree computes"
        return self._by.refuses(node, path)

    def _becomes(self, number: int, state: bytes | None) -> None:
        """An update is its stream's last one from here on, if not older, and wakes others."""
        event = self._updates[number]
        self._by.happens(event)
        if not event.document:
            return  # it has none of this timestamp any more, and nobody is told
        last = self._known.get(event.node)
        if last is None or becomes_last(event.timestamp, last.timestamp):
            kept = last.state if last is not None and state is None else state
            self.lasts[event.node] = Last(event.node, event.timestamp, event.document, kept)
        for wake in self._nodes[event.node].wakes:
            if is_woken(event, wake, self._nodes):
                path = (*event.path, wake.number)
                heappush(self._waiting, (len(path), path, _Arrival(number, wake)))


def is_woken(event: Event, wake: Wake, nodes: Sequence[Node]) -> bool:
    """Whether an update wakes the composite of a wake of its stream."""
    if nodes[wake.node].follows and wake.argument != CLOCK:
        return event.only in (FOLLOWERS, wake.number)
    return event.only is None or event.only == wake.number


def _takes_back(event: Event) -> bool:
    """Whether it says that its stream's result of this timestamp is none any more."""
    revision = revision_of(event.document) if event.only == FOLLOWERS else None
    return revision is not None and revision.retracted


class Endings:
    """How computations ended: one of each composite and kind."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, str], Ended] = {}

    def add(self, ended: Ended) -> None:
        """Note one that comes after those before."""
        key = ended.node, ended.kind
        before = self._last.get(key)
        if before is not None:
            ended = ended._replace(times=ended.times + before.times)
        self._last[key] = ended

    def all(self) -> list[Ended]:
        """All of them."""
        return list(self._last.values())


def _all_but_last(arrived: Mapping[int, list[Path]]) -> frozenset[Path]:
    return frozenset(path for paths in arrived.values() for path in paths[:-1])
