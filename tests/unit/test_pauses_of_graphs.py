"""Between two pauses of whoever makes the graph of a component lie only so many of its streams.

Nothing is timed. A document of a thousand streams was one step, 90 ms of a component of 13,500.
"""

from __future__ import annotations

from typing import Any

from benchmarks.attacks.crowding import subscribers
from sandbox import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.graph import Graph
from servioticy.domain.model import ServiceObject, StreamRef
from servioticy.domain.pauses import PACES, PAUSE
from servioticy.domain.regions import _named, _sides, find_woken


def of(document: dict[str, Any], id_: str = "so") -> ServiceObject:
    definition = parse_service_object(document, id_, argument_names)
    return ServiceObject(definition, 1, 1, 0, {})


def pauses(count: int) -> int:
    """How many the graph of a device and so many subscribers in one document has."""
    device = of({"streams": {"s": {"channels": {"v": {"type": "number"}}}}}, "device")
    crowd = of(subscribers("device", "s", count))
    return sum(1 for _ in Graph(()).component([device, crowd]))


def test_streams_of_one_document_have_pauses_between_them() -> None:
    few, many = pauses(10), pauses(1000)

    # They are taken in, found in circles and levels, connected, wired, and noted.
    assert many - few >= 8 * (1000 - 10) // PAUSE


def test_those_that_one_stream_wakes_have_pauses_between_them() -> None:
    graph = Graph([of(subscribers("so", "c0", 1000))])
    wakes = list(graph.wakes(StreamRef("so", "c0"))) * 5
    members = [graph.stream(each.composite) for each in wakes]

    assert len(members) > 4 * PACES
    assert sum(1 for _ in _named(members)) >= len(members) // PACES - 1
    assert sum(1 for _ in _sides(members)) >= len(members) // PACES - 1
    assert sum(1 for _ in find_woken([members[:1]], lambda _ref: wakes)) >= 4
