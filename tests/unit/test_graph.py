"""Who is woken by an update, directly or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine_builders import a_service_object

from sandbox.text import argument_names
from servioticy.domain.borders import with_inputs
from servioticy.domain.documents import parse_service_object
from servioticy.domain.graph import Graph
from servioticy.domain.model import InputFromOutside, InputRef, ServiceObject, StreamRef
from servioticy.domain.pauses import finished


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


def test_who_reads_what_is_not_known_here_stays_when_others_come_and_go() -> None:
    """Whose streams they are may be deleted, or have no version in force."""
    graph = Graph(())
    for number, name in enumerate("ab"):
        groups = {"g": (["gone"], name)}
        graph.merge(Graph([an_object(f"reads-{name}", number, groups, s="g")]))
    assert woken(graph, "gone", "a") == ["reads-a/s"]
    assert woken(graph, "gone", "b") == ["reads-b/s"]

    graph.drop({"reads-a"})
    assert not graph.knows(StreamRef("reads-a", "s"))
    assert woken(graph, "gone", "b") == ["reads-b/s"]
    graph.drop({"gone"})
    assert woken(graph, "gone", "b") == []


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


X, Y = StreamRef("x", "d"), StreamRef("y", "d")


def a_reader(id_: str, sequence: int, **composites: tuple[str, ...]) -> ServiceObject:
    """Of tenant 1; `gx` and `gy` are groups of a tenant 7, both of which it may read."""
    groups = {"gx": (["x"], "d"), "gy": (["y"], "d")}
    made = a_service_object(composites, id_=id_, groups=groups, sequence=sequence)
    inputs = {each: InputFromOutside(7, is_open=True) for each in (X, Y)}
    return with_inputs(replace(made, inputs=inputs))


def test_inputs_from_outside_wake_their_own_reader_alone() -> None:
    """Another one may have begun to read the same stream at another place."""
    readers = [a_reader("late", 3, c=("gx",)), a_reader("early", 2, c=("gx",), e=("c", "gx"))]
    graph = Graph(readers)

    assert [str(each.composite) for each in graph.wakes(InputRef(X, 3))] == ["late/c"]
    assert [str(each.composite) for each in graph.wakes(InputRef(X, 2))] == ["early/c", "early/e"]
    assert graph.wakes(X) == ()
    assert not graph.knows(X)
    assert graph.knows(InputRef(X, 2))


def test_an_input_is_its_provider_s_and_kept_where_it_is_read_beside_others() -> None:
    graph = Graph([a_reader("r", 4, a=("gx", "d"), b=("gy",))])
    kept, light = graph.stream(InputRef(X, 4)), graph.stream(InputRef(Y, 4))

    assert (kept.tenant, light.tenant) == (7, 7)
    assert kept.keeper == (1, "r")
    assert light.keeper is None
    assert kept.composite is None
    assert kept.read_in == ()
    assert InputRef(X, 4) in graph.needed([graph.plan(graph.stream(StreamRef("r", "d")))])
    assert {each.tenant for each in graph.regions()} == {1}


def test_with_a_service_object_its_inputs_are_forgotten() -> None:
    graph = Graph([a_reader("r", 4, c=("gx",)), a_reader("s", 5, c=("gx",))])

    assert graph.drop({"r"}) == [InputRef(X, 4)]
    assert not graph.knows(InputRef(X, 4))
    assert graph.wakes(InputRef(X, 4)) == ()
    assert [str(each.composite) for each in graph.wakes(InputRef(X, 5))] == ["s/c"]


def test_a_whole_tree_has_one_region_that_all_its_roots_enter() -> None:
    """Though nothing else holds them together; and of one root only what that reaches."""
    graph = Graph([a_reader("r", 4, a=("gx",), b=("gy",)), a_reader("s", 5, c=("gx",))])
    roots = [graph.stream(InputRef(*each)) for each in ((X, 4), (Y, 4), (X, 5))]

    first, second, third = finished(graph.whole(roots))

    ((region, _number),) = first
    assert {entries[0][0] for entries in (first, second, third)} == {region}
    assert len({entries[0][1] for entries in (first, second, third)}) == 3
    assert {each.key for _, each in region.composites()} == {"r/a", "r/b", "s/c"}
    (((alone, _number),),) = finished(graph.whole(roots[:1]))
    assert {each.key for _, each in alone.composites()} == {"r/a"}


def test_who_reads_a_stream_elsewhere_is_known_with_it() -> None:
    provider = replace(a_service_object(), read_in={"d": (0, 3)})

    assert Graph([provider]).stream(StreamRef("so", "d")).read_in == (0, 3)
