"""Stage 2: give every computation its inputs, as they stood at its place in the log."""

from __future__ import annotations

from typing import TypeAlias

import orjson

from pipeline.state.batch import BatchState
from pipeline.state.programs import Programs
from pipeline.steps import DIRECT_WRITE, Fold, PendingStep, Place, Round, Step, Verdict
from sandbox.program import Assignment, Call, Computation
from servioticy.domain.graph import Graph
from servioticy.domain.model import LastUpdate, StreamRef, Timestamp
from servioticy.domain.timing import (
    moved_past,
    newest,
    output_timestamp,
    triggers,
    triggers_by_input,
)
from servioticy.domain.verdicts import MISSING, STALE

Values: TypeAlias = list[LastUpdate | None]
"""The update that each input is; None where there is none yet."""


def fetch(
    steps: Round, graph: Graph, state: BatchState, programs: Programs
) -> tuple[list[Fold], list[Verdict]]:
    """The folds of a round, and how those steps ended that cannot compute.

    They cannot where their trigger is stale, or where an input has no update yet and the
    composite chose to wait for one.
    """
    folds: list[Fold] = []
    ended: list[Verdict] = []
    for ref, theirs in steps.items():
        if theirs:
            preparing = _Preparing(ref, theirs[0].place, graph, state, programs, ended)
            for step in theirs:
                preparing.add(step)
            if preparing.steps:
                folds.append(preparing.fold())
    return folds, ended


def used_inputs(last: LastUpdate | None) -> dict[str, Timestamp]:
    """Of a composite with `staleness: "input"`: the newest of each source in an output."""
    return orjson.loads(last.state) if last and last.state else {}


class _Preparing:
    """Prepares the steps of one composite, which are added in order of place."""

    def __init__(
        self,
        ref: StreamRef,
        first: Place,
        graph: Graph,
        state: BatchState,
        programs: Programs,
        ended: list[Verdict],
    ) -> None:
        service_object, _stream, composite = graph.composite(ref)
        self._ref, self._tenant = ref, service_object.tenant
        self._state = state
        self._ended = ended
        self._program = programs.of(ref, service_object.version, composite)
        self._own = composite.own
        self._members = [each.members for each in composite.inputs]
        self._timelines = [
            state.timeline(members[0]) if len(members) == 1 else None for members in self._members
        ]
        self._by_input = composite.options.staleness == "input"
        self._skips = composite.options.missing == "skip"
        self._previous = state.last_at(ref, first)
        self._documents: dict[bytes, int] = {}
        self._calls: list[Computation | Assignment] = []
        self.steps: list[PendingStep] = []
        """The steps that the sandbox is asked for."""

    def add(self, step: Step) -> None:
        """Make the step part of the fold, or note in `ended` why it is not."""
        if step.kind == DIRECT_WRITE:
            _origin, timestamp, document = step.update
            self._calls.append(Assignment(self._index(document), timestamp))
            self.steps.append(PendingStep(step))
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
        """All steps that were added and compute, as one call of the sandbox."""
        previous = self._previous
        call = Call(
            self._program,
            previous and previous.document,
            previous and previous.timestamp,
            tuple(self._documents),
            tuple(self._calls),
        )
        return Fold(self._ref, self._tenant, self.steps, call)

    def _is_stale(self, step: Step) -> bool:
        """Last outputs only grow, so what is stale before the fold is stale in it."""
        previous, trigger = self._previous, step.update
        if self._by_input:
            uses = used_inputs(previous)
            return not triggers_by_input(trigger.timestamp, uses.get(str(trigger.origin)))
        return not triggers(trigger.timestamp, previous and previous.timestamp)

    def _lacks(self, values: Values) -> bool:
        """Whether an input has no update yet; the first own output has to come from somewhere."""
        return any(value is None for number, value in enumerate(values) if number != self._own)

    def _values(self, step: Step) -> Values:
        """The update that each input is for this step."""
        place, _composite, _kind, trigger, arrived = step
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
        """Which member of a group has the newest update, and that update."""
        members = self._members[number]
        return newest([(ref, self._state.last_at(ref, place)) for ref in members])

    def _compute(self, step: Step, values: Values) -> None:
        own, trigger, uses = self._own, step.update.timestamp, None
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
                timestamp, document, _state = value
                indexes.append(self._index(document))
                times.append(timestamp)
                others.append(timestamp)
        floor = output_timestamp(trigger, others, None)
        self._calls.append(Computation(step.input, trigger, floor, tuple(indexes)))
        self.steps.append(PendingStep(step, tuple(times), uses))

    def _used(self, step: Step, values: Values) -> bytes:
        """The newest of each source that has been in an output, if this becomes one."""
        uses = used_inputs(self._previous)
        for number, value in enumerate(values):
            if value is not None and number != self._own:
                source = str(self._source(number, step))
                uses[source] = max(uses.get(source, value.timestamp), value.timestamp)
        return orjson.dumps(uses)

    def _source(self, number: int, step: Step) -> StreamRef:
        """The stream that an input which has a value has it from."""
        if number == step.input:
            return step.update.origin
        member = self._newest(number, step.place)
        return member[0] if member else self._members[number][0]

    def _index(self, document: bytes) -> int:
        """Its place in the table of the call; most computations share with a neighbour."""
        return self._documents.setdefault(document, len(self._documents))

    def _end(
        self, step: Step, kind: str, message: str, times: tuple[Timestamp | None, ...] = ()
    ) -> None:
        self._ended.append(Verdict(step.place, self._ref, kind, step.update, message, times))
