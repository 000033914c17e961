"""Service Objects, graphs and updates by few words, for tests of single parts of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from python_evaluator import Compute, PythonEvaluator

from pipeline.state.partition import Partition
from pipeline.work import LoggedUpdate, Root
from sandbox import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.evaluators.evaluator import Evaluators
from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import LastUpdate, ServiceObject, StreamRef
from servioticy.domain.pauses import finished

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


def recalled(partition: Partition, *streams: KnownStream) -> Mapping[StreamRef, LastUpdate | None]:
    """The last updates that trees of updates of these streams need."""
    return finished(partition.recall([partition.graph.plan(each) for each in streams]))


def document(value: int) -> bytes:
    return b'{"channels":{"v":{"current-value":%d}}}' % value


def logged(offset: int, timestamp: int, origin: StreamRef = D, *, tenant: int = 1) -> LoggedUpdate:
    """An update of the log whose value is its timestamp."""
    return LoggedUpdate(offset, tenant, [Root(origin, timestamp, document(timestamp))], b"")


def evaluators(compute: Compute = lambda trigger, _values: trigger.timestamp) -> Evaluators:
    """One evaluator of everything; without `compute` values are the triggers' timestamps."""
    return {"javascript": PythonEvaluator(compute)}
