"""Who is woken by an update, directly or not."""

from __future__ import annotations

from typing import Any

from sandbox.text import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.graph import Graph
from servioticy.domain.model import ServiceObject, StreamRef


def an_object(id_: str, sequence: int, groups: Any = None, **streams: str | None) -> ServiceObject:
    """Streams by name, each with the argument list of its function, or None for a simple one."""
    document = {
        "version": "0.2.0",
        "groups": {name: {"soIds": ids, "stream": s} for name, (ids, s) in (groups or {}).items()},
        "streams": {
            name: {
                "channels": {
                    "x": {"type": "number"}
                    | ({} if names is None else {"current-value": f"function({names}){{}}"})
                }
            }
            for name, names in streams.items()
        },
    }
    definition = parse_service_object(document, id_, argument_names)
    return ServiceObject(definition, 1, 1, sequence, {})


def woken(graph: Graph, service_object: str, stream: str) -> list[str]:
    return [str(each.composite) for each in graph.wakes(StreamRef(service_object, stream))]


def refs(*names: str) -> set[StreamRef]:
    return {StreamRef("o", name) for name in names}


def test_own_streams_first_then_subscribers_in_order_of_subscription() -> None:
    late = an_object("late", 3, {"g": (["o"], "a")}, s="g")
    early = an_object("early", 2, {"g": (["o"], "a")}, s="g")
    own = an_object("o", 9, b="a", a=None, c="a")

    assert woken(Graph([late, own, early]), "o", "a") == ["o/b", "o/c", "early/s", "late/s"]


def test_a_stream_does_not_wake_itself() -> None:
    graph = Graph([an_object("o", 1, a=None, b="a,b")])

    assert woken(graph, "o", "b") == []
    assert woken(graph, "o", "a") == ["o/b"]


def test_a_source_in_two_groups_wakes_once_per_group() -> None:
    groups = {"g": (["o"], "a"), "h": (["o"], "a")}
    graph = Graph([an_object("o", 1, a=None), an_object("p", 2, groups, s="g,h")])

    assert [each.input for each in graph.wakes(StreamRef("o", "a"))] == [0, 1]


def test_reachable_is_the_whole_execution_tree() -> None:
    graph = Graph([an_object("o", 1, a=None, b="a", c="b", d="c,b", e=None, f="e")])

    assert graph.reachable(refs("a")) == refs("b", "c", "d")
    assert graph.reachable(refs("d")) == set()


def test_loops_are_reached_once() -> None:
    graph = Graph([an_object("o", 1, a=None, b="a,c", c="b")])

    assert graph.reachable(refs("a")) == refs("b", "c")


def test_it_knows_how_a_composite_is_computed() -> None:
    graph = Graph([an_object("o", 1, a=None, b="a")])

    assert graph.composite(StreamRef("o", "b")) == graph.stream(StreamRef("o", "b")).composite
