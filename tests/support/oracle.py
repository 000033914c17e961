"""The serial law, written once more and as plainly as possible: the oracle of the engine.

It takes the log one record at a time and runs its whole tree breadth first, in order of
subscription, from the paper's sections 3.3 to 3.5. A tree is of one tenant. It shares no code with
the engine. Values are integers and code is a Python function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

Ref = tuple  # (Service Object, stream), of an input from outside with the component that reads it
Update = tuple[int, int]  # timestamp, value
Path = tuple[int, ...]

MOST_BORDERS = 8


class Root(NamedTuple):
    """What comes into a tree: an update, or several that crossed a border together."""

    source: Ref
    update: Update
    path: Path = ()


@dataclass(frozen=True)
class Limits:
    """How far one tree may go."""

    hops: int = 10**9
    computations: int = 10**9
    tree_bytes: int = 10**9


class ScriptError(Exception):
    """The tenant's code threw."""


@dataclass(frozen=True)
class Composite:
    """A composite stream: the names it reads, what it makes of their values, its options."""

    name: str
    reads: tuple[str, ...]
    compute: Callable[[list[int | None]], int | None]
    settles: bool = False
    by_input: bool = False
    skips: bool = False


@dataclass(frozen=True)
class Object:
    """A Service Object: its streams in document order, and its groups."""

    id: str
    simple: tuple[str, ...]
    composites: tuple[Composite, ...]
    groups: dict[str, tuple[Ref, ...]] = field(default_factory=dict)
    tenant: int = 0

    def members(self, name: str) -> tuple[Ref, ...]:
        return self.groups.get(name, ((self.id, name),))


class _Step(NamedTuple):
    """An update from outside, or one that wakes a composite: its object, it, the name it reads."""

    source: Ref
    update: Update
    reader: tuple[Object, Composite, str] | None


def written(update: Update) -> str:
    """An output as the platform writes it."""
    timestamp, value = update
    return f'{{"channels":{{"v":{{"current-value":{value}}}}},"lastUpdate":{timestamp}}}'


class Oracle:
    """What is stored, which update is each stream's last, and how computations ended."""

    def __init__(self, objects: list[Object], limits: Limits | None = None) -> None:
        self.objects = objects
        self.limits = limits or Limits()
        self.stored: dict[tuple[Ref, int], int] = {}
        self.order: list[tuple[Ref, int, int]] = []
        self.last: dict[Ref, Update] = {}
        self.uses: dict[Ref, dict[Ref, int]] = {}
        self.verdicts: Counter[tuple[Ref, str]] = Counter()
        self.last_verdicts: dict[tuple[Ref, str], tuple[Ref, int, dict[str, int | None]]] = {}
        self.not_newer_than: dict[Ref, int] = {}

    def take(self, origin: Ref, timestamp: int, value: int) -> None:
        """Run the update's tree."""
        self.grow([Root(origin, (timestamp, value))])

    def grow(self, roots: list[Root]) -> None:
        """Run the tree; where composites settle, find out which path comes last.

        Which arrivals there are depends on what computes, so try until nothing changes.
        """
        superseded: frozenset[tuple[Path, Ref]] = frozenset()
        while True:
            trial = self._copy()
            arrived = trial._run(roots, superseded)
            earlier = frozenset(each for ways in arrived.values() for each in ways[:-1])
            if earlier == superseded:
                self.__dict__.update(trial.__dict__)
                return
            superseded = earlier

    def _copy(self) -> Oracle:
        other = copy(self)
        other.stored, other.order = dict(self.stored), list(self.order)
        other.last, other.verdicts = dict(self.last), Counter(self.verdicts)
        other.last_verdicts = dict(self.last_verdicts)
        other.not_newer_than = dict(self.not_newer_than)
        other.uses = {ref: dict(uses) for ref, uses in self.uses.items()}
        return other

    def _run(
        self, roots: Iterable[Root], superseded: frozenset[tuple[Path, Ref]]
    ) -> dict[Ref, list[tuple[Path, Ref]]]:
        """How the tree arrived at each composite that settles, in order: path and trigger.

        Everything has its place: an update is known to what comes behind it.
        """
        arrived: dict[Ref, list[tuple[Path, Ref]]] = {}
        waiting: list[tuple[int, Path, int, _Step]] = []
        numbers = count()

        def enter(path: Path, step: _Step) -> None:
            heappush(waiting, (len(path), path, next(numbers), step))

        def wake(source: Ref, update: Update, path: Path) -> None:
            for index, reader in enumerate(self._subscribers(source)):
                enter((*path, index), _Step(source, update, reader))

        for source, update, path in roots:
            enter(path, _Step(source, update, None))
        computations = size = 0
        while waiting:
            _depth, path, _number, (source, update, reader) = heappop(waiting)
            if reader is None:
                self._arrive(source, update)
                wake(source, update, path)
                continue
            owner, composite, name = reader
            ref = (owner.id, composite.name)
            if self._is_too_far(path):
                self._end(ref, "hop-limit", source, update)
                continue
            computations += 1
            if computations > self.limits.computations:
                self._end(ref, "computation-limit", source, update)
                continue
            if composite.settles and not self._is_in_a_cycle(ref):
                arrived.setdefault(ref, []).append((path, source))
            if (path, source) in superseded:
                self._end(ref, "superseded", source, update)
                continue
            if size > self.limits.tree_bytes:
                self._end(ref, "size-limit", source, update)
                continue
            output = self._compute(owner, composite, name, source, update)
            if output is not None:
                size += len(written(output))
                self._store(ref, output)
                wake(ref, output, path)
        return arrived

    def _is_too_far(self, path: Path) -> bool:
        return len(path) > self.limits.hops or sum(n < 0 for n in path) > MOST_BORDERS

    def _is_in_a_cycle(self, ref: Ref) -> bool:
        """Whether updates of the stream lead back to it: then no path is the last."""
        found, waiting = set(), [ref]
        while waiting:
            for owner, composite, _name in self._subscribers(waiting.pop()):
                if (owner.id, composite.name) not in found:
                    found.add((owner.id, composite.name))
                    waiting.append((owner.id, composite.name))
        return ref in found

    def _subscribers(self, source: Ref):
        own = [each for each in self.objects if each.id == source[0]]
        others = [each for each in self.objects if each.id != source[0]]
        for owner in own + others:
            names = [name for name in self._names(owner) if source in owner.members(name)]
            for name in names:
                for composite in owner.composites:
                    if name in composite.reads and (owner.id, composite.name) != source:
                        yield owner, composite, name

    @staticmethod
    def _names(owner: Object) -> list[str]:
        streams = [*owner.simple, *(each.name for each in owner.composites)]
        return [*streams, *(each for each in owner.groups if each not in streams)]

    def _compute(
        self, owner: Object, composite: Composite, trigger: str, source: Ref, update: Update
    ) -> Update | None:
        ref = (owner.id, composite.name)
        previous, uses = self.last.get(ref), self.uses.get(ref, {})
        inputs = {
            name: (source, update) if name == trigger else self._value(owner.members(name))
            for name in composite.reads
        }
        others = [each for name, each in inputs.items() if owner.members(name) != (ref,)]
        if composite.skips and None in others:
            self._end(ref, "missing", source, update, inputs)
            return None
        bound = uses.get(source[:2]) if composite.by_input else previous and previous[0]
        if bound is not None and update[0] <= bound:
            self.not_newer_than[ref] = bound
            self._end(ref, "stale", source, update)
            return None
        try:
            value = composite.compute([each and each[1][1] for each in inputs.values()])
        except ScriptError:
            self._end(ref, "script-error", source, update, inputs)
            return None
        if value is None:
            self._end(ref, "filtered", source, update, inputs)
            return None
        self._end(ref, "emitted", source, update, inputs)
        used = [each for each in others if each is not None]
        for member, (at, _value) in used if composite.by_input else ():
            self.uses.setdefault(ref, {})
            self.uses[ref][member[:2]] = max(at, self.uses[ref].get(member[:2], at))
        time = update[0]
        if composite.by_input and previous is not None:
            time = max(time, previous[0] + 1)
        times = [at for _member, (at, _value) in used]
        return max([time, *times, *([previous[0]] if previous else [])]), value

    def _end(
        self,
        ref: Ref,
        kind: str,
        source: Ref,
        update: Update,
        inputs: dict[str, tuple[Ref, Update] | None] | None = None,
    ) -> None:
        self.verdicts[ref, kind] += 1
        times = {name: each and each[1][0] for name, each in (inputs or {}).items()}
        self.last_verdicts[ref, kind] = (source[:2], update[0], times)

    def _value(self, members: tuple[Ref, ...]) -> tuple[Ref, Update] | None:
        best = None
        for each in members:
            update = self.last.get(each)
            if update is not None and (best is None or update[0] > best[1][0]):
                best = (each, update)
        return best

    def _arrive(self, source: Ref, update: Update) -> None:
        """Note what comes into a tree from outside."""
        self._store(source, update)

    def _store(self, ref: Ref, update: Update) -> None:
        self.stored[ref, update[0]] = update[1]
        self.order.append((ref, *update))
        self._know(ref, update)

    def _know(self, ref: Ref, update: Update) -> None:
        if ref not in self.last or update[0] >= self.last[ref][0]:
            self.last[ref] = update
