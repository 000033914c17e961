"""Stage 2: give every computation its inputs, as they stood at its place in the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import orjson

from pipeline.journal import Journal, Place, Verdict
from pipeline.stages.dispatch import Arrival, Put, Step, Turn
from sandbox.program import Assignment, Call, Computation, Program
from servioticy.graph import Graph
from servioticy.model import Composite, LastUpdate, Reference, StreamRef, Timestamp
from servioticy.programs import looked_up, program
from servioticy.references import resolve
from servioticy.timing import moved_past, newest, output_timestamp, triggers, triggers_by_input

Sourced: TypeAlias = tuple[StreamRef, LastUpdate]
"""An input's value, and the stream it is of: for a group, the member with the newest."""


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
        self._programs: dict[tuple[StreamRef, int], tuple[Program, list[Reference]]] = {}

    def of(
        self, ref: StreamRef, version: int, composite: Composite
    ) -> tuple[Program, list[Reference]]:
        """The program, and the references to look up for it."""
        key = (ref, version)
        if key not in self._programs:
            self._programs[key] = program(ref, version, composite), looked_up(composite)
        return self._programs[key]


class _Fetching:
    """One composite's steps, taken in order."""

    def __init__(
        self, ref: StreamRef, first: Place, graph: Graph, journal: Journal, programs: Programs
    ) -> None:
        service_object, _stream, composite = graph.composite(ref)
        self._ref, self._tenant = ref, service_object.tenant
        self._composite = composite
        self._journal = journal
        self._program, self._references = programs.of(ref, service_object.version, composite)
        self._own = composite.own
        self._members = [each.members for each in composite.inputs]
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
            self._end(step, "stale", "")
            return
        values = self._values(step)
        times = tuple([None if value is None else value[1].timestamp for value in values])
        if self._skips and self._lacks(times):
            self._end(step, "missing", "an input has no update yet", times)
        elif stale:
            self._end(step, "stale", "")
        else:
            self._compute(step, values, times)

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

    def _lacks(self, times: tuple[Timestamp | None, ...]) -> bool:
        """Whether an input has no update yet; the first own output has to come from somewhere."""
        return any(time is None for number, time in enumerate(times) if number != self._own)

    def _values(self, step: Arrival) -> list[Sourced | None]:
        """What each input is for this step, and which stream it is of."""
        place, arrived, trigger = step.place, step.input, step.trigger
        values: list[Sourced | None] = []
        for number, members in enumerate(self._members):
            if number == arrived:
                values.append((trigger.origin, LastUpdate(trigger.timestamp, trigger.document)))
            elif number == self._own:
                values.append(None if self._previous is None else (self._ref, self._previous))
            elif len(members) == 1:
                last = self._journal.last_at(members[0], place)
                values.append(None if last is None else (members[0], last))
            else:
                values.append(
                    newest([(ref, self._journal.last_at(ref, place)) for ref in members])
                )
        return values

    def _compute(
        self, step: Arrival, values: list[Sourced | None], times: tuple[Timestamp | None, ...]
    ) -> None:
        own, trigger, uses = self._own, step.trigger.timestamp, None
        if self._by_input:
            trigger = moved_past(trigger, self._previous and self._previous.timestamp)
            uses = self._used(values)
        indexes, others = [], []
        for number, value in enumerate(values):
            if value is None or number == own:
                indexes.append(-1)
            else:
                indexes.append(self._index(value[1].document))
                others.append(value[1].timestamp)
        for reference in self._references:
            indexes.append(self._index(self._look_up(reference, values)))
        floor = output_timestamp(trigger, others, None)
        self._steps.append(Computation(step.input, trigger, floor, tuple(indexes)))
        self.asked.append(Asked(step, times, uses))

    def _used(self, values: list[tuple[StreamRef, LastUpdate] | None]) -> Mapping[str, Timestamp]:
        """The newest of each source that has been in an output, if this becomes one."""
        uses = dict((self._previous and self._previous.uses) or {})
        for number, value in enumerate(values):
            if value is not None and number != self._own:
                source = str(value[0])
                uses[source] = max(uses.get(source, value[1].timestamp), value[1].timestamp)
        return uses

    def _look_up(self, reference: Reference, values: list[Sourced | None]) -> bytes:
        names = [each.name for each in self._composite.inputs]
        value = values[names.index(reference.source)]
        document = None if value is None else orjson.loads(value[1].document)
        return orjson.dumps(resolve(reference, document))

    def _index(self, document: bytes) -> int:
        """Its place in the table of the call; most computations share with a neighbour."""
        return self._documents.setdefault(document, len(self._documents))

    def _end(
        self, step: Arrival, kind: str, message: str, times: tuple[Timestamp | None, ...] = ()
    ) -> None:
        self._journal.end(Verdict(step.place, self._ref, kind, step.trigger, message, times))
