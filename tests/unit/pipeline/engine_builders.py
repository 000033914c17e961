"""Service Objects, graphs and updates by few words, for tests of single parts of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pipeline.steps import NewUpdate, Place
from sandbox import argument_names
from sandbox.program import Call, Computation, Fault, Outcome, Value
from servioticy.domain.documents import parse_service_object
from servioticy.domain.graph import Graph
from servioticy.domain.model import SensorUpdate, ServiceObject, StreamRef

D, C, E = StreamRef("so", "d"), StreamRef("so", "c"), StreamRef("so", "e")


def a_service_object(
    composites: Mapping[str, Sequence[str]] | None = None,
    *,
    id_: str = "so",
    simple: Iterable[str] = ("d",),
    groups: Mapping[str, tuple[Sequence[str], str]] | None = None,
    options: Mapping[str, str] | None = None,
    tenant: int = 1,
    sequence: int = 0,
) -> ServiceObject:
    """One with these simple streams, and composites by name, each with what it reads.

    `groups` are Service Objects and a stream by the group's name; `options` hold for all
    composites.
    """
    streams: dict[str, Any] = {name: {"channels": {"v": {"type": "number"}}} for name in simple}
    for name, reads in (composites or {}).items():
        code = f"function({', '.join(reads)}){{return 1}}"
        channels = {"v": {"type": "number", "current-value": code}}
        streams[name] = {"channels": channels} | dict(options or {})
    body = {
        "version": "0.2.0",
        "public": "true",
        "streams": streams,
        "groups": {
            name: {"soIds": list(owners), "stream": stream}
            for name, (owners, stream) in (groups or {}).items()
        },
    }
    definition = parse_service_object(body, id_, argument_names)
    numbers = {each.ref.stream: 10 * sequence + n for n, each in enumerate(definition.streams)}
    return ServiceObject(definition, tenant, 1, sequence, numbers)


def a_graph(composites: Mapping[str, Sequence[str]], **named: Any) -> Graph:
    """The graph of one Service Object; arguments as above."""
    return Graph([a_service_object(composites, **named)])


def document(value: int) -> bytes:
    return b'{"channels":{"v":{"current-value":%d}}}' % value


def new(
    stream: StreamRef, offset: int, timestamp: int, depth: int = 0, path: tuple[int, ...] = ()
) -> NewUpdate:
    """A new update whose value is its timestamp."""
    update = SensorUpdate(stream, timestamp, document(timestamp))
    return NewUpdate(Place(offset, depth, path), update)


class FakeSandbox:
    """Answers each computation with what `answer` says; keeps the rules that a sandbox keeps."""

    def __init__(self, answer: Callable[[Computation], Outcome] | None = None) -> None:
        self._answer = answer or (lambda step: Value(step.floor, document(step.floor)))
        self.asked: list[tuple[str, list[Call], float | None]] = []

    def run(
        self, tenant: str, calls: Sequence[Call], within: float | None = None
    ) -> list[list[Outcome]]:
        self.asked.append((tenant, list(calls), within))
        return [self._fold(call) for call in calls]

    def _fold(self, call: Call) -> list[Outcome]:
        last, outcomes = call.previous_timestamp, list[Outcome]()
        for step in call.steps:
            if not isinstance(step, Computation):
                last = step.timestamp if last is None else max(last, step.timestamp)
                outcomes.append(None)
            elif last is not None and step.timestamp <= last:
                outcomes.append(Fault("stale", ""))
            else:
                outcomes.append(self._answer(step))
                if isinstance(outcomes[-1], Value):
                    last = outcomes[-1].timestamp
        return outcomes
