"""Stage 2: give every computation its inputs, as they stood at its place in the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from pipeline.journal import Journal, Place, Verdict
from pipeline.stages.dispatch import Arrival, Put, Step, Turn
from sandbox.program import Assignment, Call, Computation, Program
from servioticy.domain.graph import Graph
from servioticy.domain.model import Composite, LastUpdate, StreamRef, Timestamp
from servioticy.domain.scripts import program
from servioticy.domain.timing import (
    moved_past,
    newest,
    output_timestamp,
    triggers,
    triggers_by_input,
)
from servioticy.domain.verdicts import MISSING, STALE

Values: TypeAlias = list[LastUpdate | None]
"""Of each input, the update that it is; None where there is none yet."""


class Asked(NamedTuple):
    """A step that the sandbox is asked for, and what it was given."""

    step: Step
    inputs: tuple[Timestamp | None, ...] = ()
    uses: Mapping[str, Timestamp] | None = None
    """the sources of an output, where the composite's staleness is that of its inputs"""


class Fold(NamedTuple):
    """A composite's computations of one batch: what the sandbox is asked, step by step."""

    composite: StreamRef
    tenant: int
    asked: list[Asked]
    call: Call


def fetch(turn: Turn, graph: Graph, journal: Journal, programs: Programs) -> list[Fold]:
    """The folds of a turn. What cannot compute ends here: stale, or without an input."""
    folds = []
    for ref, steps in turn.items():
        if steps:
            fetching = _Fetching(ref, steps[0].place, graph, journal, programs)
            for step in steps:
                fetching.take(step)
            if fetching.asked:
                folds.append(fetching.fold())
    return folds


class Programs:
    """The programs of composite streams, made once a version."""

    def __init__(self) -> None:
        self._programs: dict[str, dict[tuple[str, int], Program]] = {}

    def of(self, ref: StreamRef, version: int, composite: Composite) -> Program:
        """The program of this version of a stream."""
        service_object, stream = ref
        theirs = self._programs.get(service_object)
        if theirs is None:
            theirs = self._programs[service_object] = {}
        key = (stream, version)
        if key not in theirs:
            theirs[key] = program(ref, version, composite)
        return theirs[key]

    def drop(self, service_objects: Iterable[str]) -> None:
        """Those of these Service Objects are made anew when needed."""
        for each in service_objects:
            self._programs.pop(each, None)


class _Fetching:
    """One composite's steps, taken in order."""

    def __init__(
        self, ref: StreamRef, first: Place, graph: Graph, journal: Journal, programs: Programs
    ) -> None:
        service_object, _stream, composite = graph.composite(ref)
        self._ref, self._tenant = ref, service_object.tenant
        self._journal = journal
        self._program = programs.of(ref, service_object.version, composite)
        self._own = composite.own
        self._members = [each.members for each in composite.inputs]
        self._timelines = [
            journal.timeline(members[0]) if len(members) == 1 else None
            for members in self._members
        ]
        self._by_input = composite.options.staleness == "input"
        self._skips = composite.options.missing == "skip"
        self._previous = journal.last_at(ref, first)
        self._documents: dict[bytes, int] = {}
        self._steps: list[Computation | Assignment] = []
        self.asked: list[Asked] = []

    def take(self, step: Step) -> None:
        """Ask the sandbox for the step, or note why not."""
        if isinstance(step, Put):
            update = step.made.update
            self._steps.append(Assignment(self._index(update.document), update.timestamp))
            self.asked.append(Asked(step))
            return
        # Whether something is missing comes first: it does not depend on the fold so far.
        stale = self._is_stale(step)
        if stale and not self._skips:
            self._end(step, STALE, "")
            return
        values = self._values(step)
        if self._skips and self._lacks(values):
            times = tuple([None if value is None else value.timestamp for value in values])
            self._end(step, MISSING, "an input has no update yet", times)
        elif stale:
            self._end(step, STALE, "")
        else:
            self._compute(step, values)

    def fold(self) -> Fold:
        """What was asked."""
        previous = self._previous
        call = Call(
            self._program,
            previous and previous.document,
            previous and previous.timestamp,
            tuple(self._documents),
            tuple(self._steps),
        )
        return Fold(self._ref, self._tenant, self.asked, call)

    def _is_stale(self, step: Arrival) -> bool:
        """Last outputs only grow, so what is stale before the fold is stale in it."""
        previous, trigger = self._previous, step.trigger
        if self._by_input:
            uses = (previous and previous.uses) or {}
            return not triggers_by_input(trigger.timestamp, uses.get(str(trigger.origin)))
        return not triggers(trigger.timestamp, previous and previous.timestamp)

    def _lacks(self, values: Values) -> bool:
        """Whether an input has no update yet; the first own output has to come from somewhere."""
        return any(value is None for number, value in enumerate(values) if number != self._own)

    def _values(self, step: Arrival) -> Values:
        """What each input is for this step."""
        place, _composite, arrived, trigger = step
        values: Values = []
        for number, timeline in enumerate(self._timelines):
            if number == arrived:
                values.append(LastUpdate(trigger.timestamp, trigger.document))
            elif number == self._own:
                values.append(self._previous)
            elif timeline is not None:
                values.append(timeline.at(place))
            else:
                member = self._newest(number, place)
                values.append(member and member[1])
        return values

    def _newest(self, number: int, place: Place) -> tuple[StreamRef, LastUpdate] | None:
        """Which member of a group has the newest update, and that."""
        members = self._members[number]
        return newest([(ref, self._journal.last_at(ref, place)) for ref in members])

    def _compute(self, step: Arrival, values: Values) -> None:
        own, trigger, uses = self._own, step.trigger.timestamp, None
        if self._by_input:
            trigger = moved_past(trigger, self._previous and self._previous.timestamp)
            uses = self._used(step, values)
        indexes: list[int] = []
        others: list[Timestamp] = []
        times: list[Timestamp | None] = []
        for number, value in enumerate(values):
            if value is None or number == own:
                indexes.append(-1)
                times.append(value and value.timestamp)
            else:
                timestamp, document, _uses = value
                indexes.append(self._index(document))
                times.append(timestamp)
                others.append(timestamp)
        floor = output_timestamp(trigger, others, None)
        self._steps.append(Computation(step.input, trigger, floor, tuple(indexes)))
        self.asked.append(Asked(step, tuple(times), uses))

    def _used(self, step: Arrival, values: Values) -> Mapping[str, Timestamp]:
        """The newest of each source that has been in an output, if this becomes one."""
        uses = dict((self._previous and self._previous.uses) or {})
        for number, value in enumerate(values):
            if value is not None and number != self._own:
                source = str(self._source(number, step))
                uses[source] = max(uses.get(source, value.timestamp), value.timestamp)
        return uses

    def _source(self, number: int, step: Arrival) -> StreamRef:
        """The stream that an input which has a value has it from."""
        if number == step.input:
            return step.trigger.origin
        member = self._newest(number, step.place)
        return member[0] if member else self._members[number][0]

    def _index(self, document: bytes) -> int:
        """Its place in the table of the call; most computations share with a neighbour."""
        return self._documents.setdefault(document, len(self._documents))

    def _end(
        self, step: Arrival, kind: str, message: str, times: tuple[Timestamp | None, ...] = ()
    ) -> None:
        self._journal.end(Verdict(step.place, self._ref, kind, step.trigger, message, times))
