"""The serial law, written once more and as plainly as possible: the oracle of the engine.

It takes the log one update at a time and runs its whole tree breadth first, in order of
subscription, from the paper's sections 3.3 to 3.5 and the contract's section 2.4. It
shares no code with the engine. Values are integers and code is a Python function.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

Ref = tuple[str, str]
Update = tuple[int, int]  # timestamp, value


class ScriptError(Exception):
    """The tenant's code threw."""


@dataclass(frozen=True)
class Composite:
    """A composite stream: the names it reads, and what it makes of their values."""

    name: str
    reads: tuple[str, ...]
    compute: Callable[[list[int | None]], int | None]


@dataclass(frozen=True)
class Object:
    """A Service Object: its streams in document order, and its groups."""

    id: str
    simple: tuple[str, ...]
    composites: tuple[Composite, ...]
    groups: dict[str, tuple[Ref, ...]] = field(default_factory=dict)

    def members(self, name: str) -> tuple[Ref, ...]:
        return self.groups.get(name, ((self.id, name),))


class Oracle:
    """What is stored, which update is each stream's last, and how computations ended."""

    def __init__(self, objects: list[Object]) -> None:
        self.objects = objects
        self.stored: dict[tuple[Ref, int], int] = {}
        self.order: list[tuple[Ref, int, int]] = []
        self.last: dict[Ref, Update] = {}
        self.verdicts: Counter[tuple[Ref, str]] = Counter()

    def take(self, origin: Ref, timestamp: int, value: int) -> None:
        self._store(origin, (timestamp, value))
        queue = deque([(origin, (timestamp, value))])
        while queue:
            source, update = queue.popleft()
            for owner, composite, name in self._subscribers(source):
                output = self._compute(owner, composite, name, update)
                if output is not None:
                    self._store((owner.id, composite.name), output)
                    queue.append(((owner.id, composite.name), output))

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
        self, owner: Object, composite: Composite, trigger: str, update: Update
    ) -> Update | None:
        ref = (owner.id, composite.name)
        previous = self.last.get(ref)
        if previous is not None and update[0] <= previous[0]:
            self.verdicts[ref, "stale"] += 1
            return None
        inputs = [
            update if name == trigger else self._value(owner.members(name))
            for name in composite.reads
        ]
        try:
            value = composite.compute([None if each is None else each[1] for each in inputs])
        except ScriptError:
            self.verdicts[ref, "script-error"] += 1
            return None
        if value is None:
            self.verdicts[ref, "filtered"] += 1
            return None
        self.verdicts[ref, "emitted"] += 1
        times = [each[0] for each in inputs if each is not None]
        return max([update[0], *times, *([previous[0]] if previous else [])]), value

    def _value(self, members: tuple[Ref, ...]) -> Update | None:
        best = None
        for each in members:
            update = self.last.get(each)
            if update is not None and (best is None or update[0] > best[0]):
                best = update
        return best

    def _store(self, ref: Ref, update: Update) -> None:
        self.stored[ref, update[0]] = update[1]
        self.order.append((ref, *update))
        if ref not in self.last or update[0] >= self.last[ref][0]:
            self.last[ref] = update
