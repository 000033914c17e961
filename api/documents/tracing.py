"""What became of one update: the composites that it woke, and how each computation ended.

Nothing is stored for it. An output is in the history under the timestamp that its inputs gave it,
and of each way to end the store has the last computation: what was asked for lately is told with
its inputs and messages, of what is older how it must have been, as far as that follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from api.documents.traced import At, Made, Noted, TracedStore
from servioticy.domain.graph import Graph
from servioticy.domain.model import Composite, StreamRef, Timestamp
from servioticy.domain.options import DEFAULTS
from servioticy.domain.verdicts import EMITTED, STALE

MOST_STEPS = 500
MOST_INPUTS = 2_000
"""Streams of which it is looked up what a computation read, in a whole trace."""
MOST_MEMBERS = 50
"""Of a group that are looked at for it."""
MORE = "..."
"""How many inputs a stored verdict leaves out, among their names."""

NOTED = "noted"
"""The computation is the last one that ended so: all that is stored of it is told."""
STORED = "stored"
"""Its output is in the history; what it read is what the history has up to then."""
RULE = "rule"
"""It follows from the rules: another path of the same tree was here first."""
OPEN = "open"
"""Nothing is stored of it: later computations have ended in the same way."""


@dataclass(frozen=True, slots=True)
class Used:
    """What a computation had as an input."""

    name: str
    stream: StreamRef | None
    """None: one of a group, and it is not stored which"""
    timestamp: Timestamp | None
    """None: it had no update"""


@dataclass(slots=True)
class Step:
    """An update that got to a composite, and what came of that."""

    stream: StreamRef
    source: StreamRef
    at: Timestamp
    """of the update that got here"""
    input: int
    name: str
    """of that input"""
    depth: int
    borders: int
    """between tenants, on the way here"""
    verdict: str | None = None
    known: str = OPEN
    output: Timestamp | None = None
    made: Made | None = None
    noted: Noted | None = None
    inputs: Sequence[Used] = ()
    left_out: int = 0
    """inputs that are not told"""
    may_be: Sequence[str] = ()
    """where it is not known: how computations of this composite have ended, but for outputs"""


class Tracing:
    """Follows one update, level by level, as the engine takes it."""

    def __init__(
        self,
        origin: At,
        graph: Graph,
        store: TracedStore,
        sees: Callable[[StreamRef], bool],
    ) -> None:
        self.steps: list[Step] = []
        self.hidden: set[StreamRef] = set()
        """composites of others that it gets to, and that the caller may not see"""
        self.complete = True
        self._graph, self._store, self._sees = graph, store, sees
        self._made: dict[StreamRef, int] = {origin[0]: 0}
        """what has an update of this tree, behind how many borders"""
        self._inputs_left = MOST_INPUTS
        self._tenant = graph.stream(origin[0]).tenant
        level = [origin]
        depth = 0
        while level:
            depth += 1
            arrived = self._arriving(level, depth)
            level = self._ended(arrived)
            self.steps += arrived

    def _arriving(self, level: Iterable[At], depth: int) -> list[Step]:
        """Return whom these updates wake, as far as the caller may see them."""
        found: list[Step] = []
        for source, at in level:
            tenant = self._graph.stream(source).tenant
            for wake in self._graph.wakes(source):
                if not self._sees(wake.composite):
                    self.hidden.add(wake.composite)
                    continue
                if len(self.steps) + len(found) >= MOST_STEPS:
                    self.complete = False
                    break
                crossed = self._graph.stream(wake.composite).tenant != tenant
                borders = self._made[source] + crossed
                name = self._graph.composite(wake.composite).inputs[wake.input].name
                step = Step(wake.composite, source, at, wake.input, name, depth, borders)
                found.append(step)
        readable = self._store.can_read(each.stream for each in found)
        self.hidden |= {each.stream for each in found} - readable
        return [each for each in found if each.stream in readable]

    def _ended(self, steps: Sequence[Step]) -> list[At]:
        """Find out how each ended; return what was made."""
        own = {each.stream for each in steps if self._is_own(each.stream)}
        noted = self._store.noted(own)
        for step in steps:
            all_of_it = noted.get(step.stream, ())
            step.noted = _last_of(step, all_of_it)
            step.may_be = sorted({each.verdict for each in all_of_it} - {EMITTED})
            step.output = step.at
            if step.noted is not None and _has_made(step):
                step.output = _output(step, step.noted, self._graph.composite(step.stream))
        made = self._store.made(
            dict.fromkeys((each.stream, each.output or each.at) for each in steps)
        )
        # Where it is stored which of several paths has made it, no other one has.
        known = {each.stream for each in steps if _has_made(each)}
        stored = {at: each for at, each in made.items() if at[0] not in known}
        level = [at for step in steps if (at := self._decide(step, made, stored)) is not None]
        self._tell_inputs(steps)
        return level

    def _is_own(self, stream: StreamRef) -> bool:
        return self._graph.stream(stream).tenant == self._tenant

    def _decide(self, step: Step, made: Mapping[At, Made], stored: Mapping[At, Made]) -> At | None:
        """Say how it ended; return what it made, if it made anything.

        `stored`: what is made of which it is not noted by which path.
        """
        output = step.stream, step.output or step.at
        verdict = None if step.noted is None else step.noted.verdict
        is_first = step.stream not in self._made
        if is_first and (verdict == EMITTED or (verdict in (None, STALE) and output in stored)):
            step.verdict, step.known = EMITTED, NOTED if verdict == EMITTED else STORED
            step.noted = step.noted if verdict == EMITTED else None
            step.made = made.get(output)
            self._made[step.stream] = step.borders
            return output
        step.output = None
        if verdict is not None and verdict != EMITTED:
            step.verdict, step.known = verdict, NOTED
            return None
        step.noted = None
        options = self._graph.composite(step.stream).options
        if not is_first and (options.diamonds, options.staleness) == (
            DEFAULTS.diamonds,
            DEFAULTS.staleness,
        ):
            step.verdict, step.known = STALE, RULE
        return None

    def _tell_inputs(self, steps: Sequence[Step]) -> None:
        looked: dict[int, list[tuple[str, StreamRef]]] = {}
        for number, step in enumerate(steps):
            if step.noted is not None:
                step.inputs, step.left_out = _used(step.noted, self._graph.composite(step.stream))
            elif step.known == STORED and self._is_own(step.stream):
                looked[number] = self._to_look_up(step)
        wanted = {
            (ref, steps[number].output or 0) for number, some in looked.items() for _, ref in some
        }
        newest = self._store.newest_until(wanted) if wanted else {}
        for number, some in looked.items():
            step = steps[number]
            step.inputs = list(_newest_of_each(step, some, newest))

    def _to_look_up(self, step: Step) -> list[tuple[str, StreamRef]]:
        """Return the streams that it read beside its trigger, by the names of its inputs."""
        composite = self._graph.composite(step.stream)
        found: list[tuple[str, StreamRef]] = []
        for number, each in enumerate(composite.inputs):
            if number in (step.input, composite.own):
                continue
            if len(each.members) > MOST_MEMBERS or len(each.members) > self._inputs_left:
                step.left_out += 1
                continue
            self._inputs_left -= len(each.members)
            found += [(each.name, member) for member in each.members]
        return found


def _has_made(step: Step) -> bool:
    return step.noted is not None and step.noted.verdict == EMITTED


def _last_of(step: Step, noted: Iterable[Noted]) -> Noted | None:
    """Return the computation that was this one, if it is stored; the output before the rest."""
    found = [each for each in noted if each.is_of(step.source, step.at)]
    return min(
        found, key=lambda each: (each.verdict != EMITTED, each.verdict == STALE), default=None
    )


def _output(step: Step, noted: Noted, composite: Composite) -> Timestamp:
    """Return the timestamp of what was made: the newest of all that was read."""
    inputs: Mapping[str, Timestamp | None] = noted.last.get("inputs") or {}
    own = None if composite.own is None else composite.inputs[composite.own].name
    times = [at for name, at in inputs.items() if at is not None and name not in (own, MORE)]
    newest = max((step.at, *times))
    before = inputs.get(own) if own is not None else None
    return newest if before is None or before < newest else before + 1


def _used(noted: Noted, composite: Composite) -> tuple[list[Used], int]:
    """Return the inputs that are stored of a computation, and how many are left out."""
    members = {each.name: each.members for each in composite.inputs}
    inputs = dict(noted.last.get("inputs") or {})
    left_out = inputs.pop(MORE, 0)
    told = []
    for name, at in inputs.items():
        streams = members.get(name, ())
        told.append(Used(name, streams[0] if len(streams) == 1 else None, at))
    return told, left_out


def _newest_of_each(
    step: Step,
    streams: Iterable[tuple[str, StreamRef]],
    newest: Mapping[At, Timestamp],
) -> Iterator[Used]:
    """Yield what the trigger brought, and what the history has of the other inputs."""
    yield Used(step.name, step.source, step.at)
    best: dict[str, Used] = {}
    for name, ref in streams:
        at = newest.get((ref, step.output or 0))
        known = best.get(name)
        if known is None or (at is not None and (known.timestamp is None or at > known.timestamp)):
            best[name] = Used(name, None if at is None else ref, at)
    yield from best.values()
