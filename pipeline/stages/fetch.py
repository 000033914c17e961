"""Stage 2: give every computation its inputs, as they stood at its place in the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from pipeline.journal import Journal, Place, Verdict
from pipeline.stages.dispatch import Arrival, Put, Step
from sandbox.program import Assignment, Call, Computation, Program
from servioticy.graph import Graph
from servioticy.model import Composite, LastUpdate, Reference, StreamRef
from servioticy.programs import looked_up, program
from servioticy.references import resolve
from servioticy.timing import newest, output_timestamp, triggers


class Fold(NamedTuple):
    """A composite's computations of one batch: what the sandbox is asked, step by step."""

    composite: StreamRef
    tenant: int
    steps: list[Step]
    call: Call


def fetch(
    turn: Mapping[StreamRef, Sequence[Step]], graph: Graph, journal: Journal, programs: Programs
) -> list[Fold]:
    """The folds of a turn. A trigger not newer than the last output ends here, as stale."""
    folds = []
    for ref, steps in turn.items():
        previous = journal.last_at(ref, steps[0].place)
        alive = [each for each in steps if not _is_stale(each, previous, journal)]
        if alive:
            folds.append(_fold(ref, alive, previous, graph, journal, programs))
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


def _is_stale(step: Step, previous: LastUpdate | None, journal: Journal) -> bool:
    """Last outputs only grow, so what is stale before the fold is stale in it."""
    if isinstance(step, Put) or triggers(
        step.trigger.timestamp, previous.timestamp if previous else None
    ):
        return False
    journal.verdicts.append(Verdict(step.place, step.composite, "stale", step.trigger, ""))
    return True


def _fold(
    ref: StreamRef,
    steps: list[Step],
    previous: LastUpdate | None,
    graph: Graph,
    journal: Journal,
    programs: Programs,
) -> Fold:
    service_object, _stream, composite = graph.composite(ref)
    code, references = programs.of(ref, service_object.version, composite)
    table = _Table()
    asked: list[Computation | Assignment] = []
    for step in steps:
        if isinstance(step, Put):
            update = step.made.update
            asked.append(Assignment(table.add(update.document), update.timestamp))
        else:
            asked.append(_computation(step, composite, references, journal, table))
    call = Call(
        code,
        previous and previous.document,
        previous and previous.timestamp,
        tuple(table.documents),
        tuple(asked),
    )
    return Fold(ref, service_object.tenant, steps, call)


def _computation(
    arrival: Arrival,
    composite: Composite,
    references: list[Reference],
    journal: Journal,
    table: _Table,
) -> Computation:
    trigger = LastUpdate(arrival.trigger.timestamp, arrival.trigger.document)
    values: dict[str, LastUpdate | None] = {}
    indexes, timestamps = [], []
    for number, each in enumerate(composite.inputs):
        if number == composite.own:
            indexes.append(-1)  # threaded through the fold by the sandbox
            continue
        value = (
            trigger
            if number == arrival.input
            else newest(_members(each.members, arrival.place, journal))
        )
        values[each.name] = value
        indexes.append(-1 if value is None else table.add(value.document))
        if value is not None:
            timestamps.append(value.timestamp)
    for reference in references:
        indexes.append(table.add(_look_up(reference, values.get(reference.source))))
    floor = output_timestamp(trigger.timestamp, timestamps, None)
    return Computation(arrival.input, trigger.timestamp, floor, tuple(indexes))


def _members(
    members: Sequence[StreamRef], place: Place, journal: Journal
) -> list[LastUpdate | None]:
    return [journal.last_at(each, place) for each in members]


def _look_up(reference: Reference, value: LastUpdate | None) -> bytes:
    document = None if value is None else orjson.loads(value.document)
    return orjson.dumps(resolve(reference, document))


class _Table:
    """The distinct updates of a call: most computations share theirs with a neighbour."""

    def __init__(self) -> None:
        self.documents: list[bytes] = []
        self._places: dict[bytes, int] = {}

    def add(self, document: bytes) -> int:
        place = self._places.get(document)
        if place is None:
            place = self._places[document] = len(self.documents)
            self.documents.append(document)
        return place
