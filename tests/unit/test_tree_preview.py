"""Execution trees as told before any data flows, and what is worth a warning in them."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.text import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.findings import findings
from servioticy.domain.graph import Graph
from servioticy.domain.model import ServiceObject, StreamRef
from servioticy.domain.tree_preview import Tree, grow


def an_object(id_: str, groups: Any = None, **streams: str | None) -> ServiceObject:
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
    return ServiceObject(parse_service_object(document, id_, argument_names), 1, 1, 1, {})


def tree_of(thing: ServiceObject, stream: str, *others: ServiceObject) -> Tree:
    return grow(StreamRef(thing.id, stream), Graph([thing, *others]))


def shape(tree: Tree) -> list[list[str]]:
    return [[node.stream.stream for node in level] for level in tree.levels]


def told(thing: ServiceObject, *others: ServiceObject) -> list[str]:
    everything = [thing, *others]
    simple = [
        each.ref for so in everything for each in so.definition.streams if each.composite is None
    ]
    return findings(thing.definition, Graph(everything), simple)


def test_levels_are_in_the_order_of_arrival() -> None:
    thing = an_object("o", a=None, c="b", b="a", d="a")

    assert shape(tree_of(thing, "a")) == [["b", "d"], ["c"]]
    assert shape(tree_of(thing, "c")) == []


def test_a_node_tells_what_gets_there_first_and_what_is_only_read() -> None:
    groups = {"g": (["other"], "s")}
    other = an_object("other", s=None)
    thing = an_object("o", groups, a=None, z=None, b="z,a,b,g")

    ((node,),) = tree_of(thing, "a", other).levels

    assert (node.source, node.input) == (StreamRef("o", "a"), "a")
    assert node.only_read == ("z", "g")


def test_the_first_path_to_a_diamond_counts_and_the_others_are_arrivals() -> None:
    thing = an_object("o", a=None, b="a", c="a", d="b,c,a")
    tree = tree_of(thing, "a")

    d = next(node for node in tree.nodes if node.stream.stream == "d")
    assert (d.depth, d.arrivals, d.is_diamond) == (1, 3, True)
    assert (tree.depth, tree.computations, tree.most_computations) == (1, 3, 5)
    assert told(thing) == [
        "stream d: an update of o/a reaches it by 3 paths (diamond); "
        "only the first to arrive computes"
    ]


def test_a_cycle_is_found_and_is_no_diamond() -> None:
    thing = an_object("o", a=None, b="a,c", c="b")
    tree = tree_of(thing, "a")

    assert [{ref.stream for ref in loop} for loop in tree.cycles] == [{"b", "c"}]
    assert [node.is_diamond for node in tree.nodes] == [False, False]
    assert told(thing) == [
        "streams o/b, o/c: a cycle; it ends where an update is not newer than what it triggers"
    ]


@pytest.mark.parametrize("count", [20, 21])
def test_of_a_long_cycle_twenty_streams_are_named(count: int) -> None:
    streams = {f"s{n:02}": f"s{(n + 1) % count:02}" for n in range(count)}
    (text,) = [each for each in told(an_object("o", **streams)) if "a cycle" in each]

    assert text.count("o/s") == 20
    assert ("and 1 more" in text) is (count == 21)


def test_a_tree_may_be_grown_up_to_a_number() -> None:
    """The nearest ones, and it tells whether there are more."""
    thing = an_object("o", a=None, b="a", c="a", d="b")
    graph = Graph([thing])
    whole, part = (grow(StreamRef("o", "a"), graph, most) for most in (3, 2))

    assert (shape(whole), whole.complete) == ([["b", "c"], ["d"]], True)
    assert (shape(part), part.complete) == ([["b", "c"]], False)


def test_a_stream_that_reads_itself_is_no_cycle() -> None:
    thing = an_object("o", a=None, b="a,b")

    assert tree_of(thing, "a").cycles == ()
    assert told(thing) == []


def test_an_update_does_not_come_back_to_its_origin() -> None:
    thing = an_object("o", a=None, b="a,c", c="b")
    tree = tree_of(thing, "b")

    assert shape(tree) == [["c"]]
    assert len(tree.cycles) == 1


def test_two_cycles_are_two() -> None:
    thing = an_object("o", a=None, b="a,c", c="b", d="c,e", e="d")

    loops = [{ref.stream for ref in loop} for loop in tree_of(thing, "a").cycles]
    assert loops == [{"b", "c"}, {"d", "e"}]


def test_depth_is_told_from_where_it_is_too_much() -> None:
    names = [f"s{n}" for n in range(1, 22)]
    chain = dict(zip(names, ["s0", *names], strict=False))

    assert told(an_object("o", s0=None, **dict(list(chain.items())[:20]))) == []
    assert told(an_object("o", s0=None, **chain)) == [
        "stream s21: 21 computations deep, from o/s0"
    ]


def test_a_deep_chain_needs_no_deep_stack() -> None:
    chain = {f"s{n}": f"s{n - 1}" for n in range(1, 999)}

    assert tree_of(an_object("o", s0=None, **chain), "s0").depth == 998


def test_fan_out_is_told_from_where_it_is_too_much() -> None:
    other = an_object("other", {"g": (["o"], "a")}, **{f"b{n}": "g" for n in range(990)})
    few, many = (
        an_object("o", a=None, **{f"c{n}": "a" for n in range(count)}) for count in (10, 11)
    )

    assert told(few, other) == []
    assert told(many, other) == ["stream a: one update makes up to 1001 computations (fan-out)"]


def test_what_nothing_can_trigger_is_told() -> None:
    groups = {"gone": (["deleted"], "s"), "none": ([], "s")}
    thing = an_object("o", groups, a="", b="gone", c="none,b", d="d")

    assert [each.split(":")[0] for each in told(thing)] == [f"stream {name}" for name in "abcd"]


def test_streams_of_others_are_called_as_the_caller_may_call_them() -> None:
    source = an_object("secret", s=None, t="s")
    thing = an_object("o", {"g": (["secret"], "t"), "h": (["secret"], "s")}, x="g,h")
    graph = Graph([thing, source])

    (text,) = findings(
        thing.definition, graph, [StreamRef("secret", "s")], lambda ref: "another's stream"
    )
    assert "secret" not in text and "another's stream" in text


@pytest.mark.slow
def test_large_trees_are_looked_at_only_so_far() -> None:
    """A request may not keep the API busy: four hundred streams, each reading all before it."""
    names = ["s0", *(f"s{n}" for n in range(1, 400))]
    streams = {
        name: ",".join(names[:number]) if number else None for number, name in enumerate(names)
    }
    found = told(an_object("o", **streams))

    assert any(" of 400 execution trees were looked at" in each for each in found)
