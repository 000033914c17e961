"""Who is woken by an update, and in which order to compute (design, section 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from servioticy.domain.levels import Level

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


def test_each_level_comes_after_what_it_reads() -> None:
    graph = Graph([an_object("o", 1, a=None, d="a,c", b="a", c="b,a,c")])

    assert graph.levels(refs("b", "c", "d")) == [
        Level([StreamRef("o", "b")], []),
        Level([StreamRef("o", "c")], []),
        Level([StreamRef("o", "d")], []),
    ]


def test_a_cycle_is_a_loop_of_its_level_and_disturbs_no_other() -> None:
    graph = Graph([an_object("o", 1, a=None, b="a,c", c="b", d="c", e="a")])

    assert graph.levels(refs("b", "c", "d", "e")) == [
        Level([StreamRef("o", "e")], [frozenset(refs("b", "c"))]),
        Level([StreamRef("o", "d")], []),
    ]


def test_a_loop_is_planned_also_where_part_of_it_is_refused() -> None:
    """Whoever is not refused computes, whatever place a refused composite has in the loop."""
    device = an_object("device", 1, s=None)
    first = an_object("a", 2, {"g": (["z"], "c")}, c="g")
    other = an_object("z", 3, {"g": (["a"], "c"), "h": (["device"], "s")}, c="g,h")
    graph = Graph([device, replace(first, tenant=2), other])
    reached, loop = StreamRef("z", "c"), {StreamRef("a", "c"), StreamRef("z", "c")}

    assert graph.plan([StreamRef("device", "s")], {2}) == ({reached}, [Level([], [loop])])


def test_a_deep_chain_needs_no_recursion() -> None:
    names = [f"s{n}" for n in range(1000)]
    streams = {"s0": None} | {name: f"s{n}" for n, name in enumerate(names[1:])}
    graph = Graph([an_object("o", 1, **streams)])

    assert len(graph.levels(refs(*names[1:]))) == 999


def test_reading_its_own_last_output_is_no_cycle() -> None:
    graph = Graph([an_object("o", 1, a=None, b="a,b")])

    assert graph.levels(refs("b")) == [Level([StreamRef("o", "b")], [])]


def test_reading_itself_in_a_group_is_a_loop() -> None:
    """A member of a group is read as it stands, which the fold cannot thread."""
    groups = {"g": (["o", "p"], "b")}
    graph = Graph([an_object("p", 1, b=None), an_object("o", 2, groups, b="g")])

    assert graph.levels(refs("b")) == [Level([], [frozenset(refs("b"))])]


def test_simple_streams_and_strangers_are_not_composite() -> None:
    graph = Graph([an_object("o", 1, a=None, b="a")])

    assert graph.is_composite(StreamRef("o", "b"))
    assert not graph.is_composite(StreamRef("o", "a"))
    assert not graph.is_composite(StreamRef("x", "b"))
    assert graph.composite(StreamRef("o", "b"))[0].id == "o"
