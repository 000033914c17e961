"""What is told of trees that cross borders between tenants, before any data flows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sandbox.text import argument_names
from servioticy.domain.borders import MAX_BORDERS
from servioticy.domain.documents import parse_service_object
from servioticy.domain.findings import findings
from servioticy.domain.graph import Graph
from servioticy.domain.model import ServiceObject, StreamRef
from servioticy.domain.tree_preview import Tree, grow

ALICE, BOB, CAROL = 1, 2, 3


def an_object(
    id_: str, tenant: int, groups: Any = None, by_input: bool = False, **streams: str | None
) -> ServiceObject:
    """Streams by name, each with what its function reads, or None for a simple one."""
    options = {"staleness": "input"} if by_input else {}
    document = {
        "version": "1.0",
        "groups": {name: {"soIds": [so], "stream": s} for name, (so, s) in (groups or {}).items()},
        "streams": {
            name: {
                "channels": {
                    "x": {"type": "number"}
                    | ({} if names is None else {"current-value": f"function({names}){{}}"})
                }
            }
            | ({} if names is None else options)
            for name, names in streams.items()
        },
    }
    return ServiceObject(parse_service_object(document, id_, argument_names), tenant, 1, 1, {})


def in_order(things: tuple[ServiceObject, ...]) -> list[ServiceObject]:
    return [replace(each, sequence=number) for number, each in enumerate(things)]


def tree_of(*things: ServiceObject) -> Tree:
    """The tree of stream `s` of the first."""
    return grow(StreamRef(things[0].id, "s"), Graph(in_order(things)))


def shape(tree: Tree) -> list[list[tuple[str, int, int, bool]]]:
    """Of each node its stream, its borders, its arrivals, and whether it is there once more."""
    return [
        [(str(node.stream), node.borders, node.arrivals, node.is_again) for node in level]
        for level in tree.levels
    ]


def told(thing: ServiceObject, *others: ServiceObject) -> list[str]:
    everything = in_order((thing, *others))
    simple = [
        each.ref for so in everything for each in so.definition.streams if each.composite is None
    ]
    return findings(thing.definition, Graph(everything), simple)


def test_a_tree_goes_on_behind_a_border_as_deep_as_it_is() -> None:
    source = an_object("p", ALICE, s=None, t="s")
    reader = an_object("r", BOB, {"g": ("p", "t")}, c="g", d="c")

    assert shape(tree_of(source, reader)) == [
        [("p/t", 0, 1, False)],
        [("r/c", 1, 1, False)],
        [("r/d", 1, 1, False)],
    ]


def test_all_that_one_tree_makes_enters_a_tenant_s_tree_together() -> None:
    """Among the updates of one record the first path computes, as within a tenant."""
    source = an_object("p", ALICE, s=None, t="s")
    reader = an_object("r", BOB, {"g": ("p", "s"), "h": ("p", "t")}, c="g,h")
    tree = tree_of(source, reader)

    (node,) = (each for each in tree.nodes if each.stream.service_object == "r")
    assert (node.depth, node.arrivals, node.is_diamond, node.is_again) == (1, 2, True, False)
    assert node.only_read == ()


def test_the_first_path_does_not_reach_over_other_tenants() -> None:
    """P to C beside P to A to C: two trees at C, of which the second is stale."""
    source = an_object("p", ALICE, s=None)
    between = an_object("a", BOB, {"g": ("p", "s")}, t="g")
    reader = an_object("c", CAROL, {"g": ("p", "s"), "h": ("a", "t")}, x="g,h", y="x")
    tree = tree_of(source, between, reader)

    assert shape(tree) == [
        [("a/t", 1, 1, False), ("c/x", 1, 1, False)],
        [("c/y", 1, 1, False), ("c/x", 2, 1, True)],
    ]
    assert not any(each.is_diamond for each in tree.nodes)
    assert (tree.computations, tree.most_computations) == (3, 4)
    first, second = (each for each in tree.nodes if str(each.stream) == "c/x")
    assert (first.only_read, second.only_read) == (("h",), ("g",))
    assert told(reader, source, between)[0] == (
        "stream x: an update of p/s also reaches it over streams of other tenants, later and in a "
        'tree of its own: that is stale as a rule, and `diamonds: "settle"` does not wait for it'
    )


def test_what_comes_back_over_two_borders_has_been_there() -> None:
    source = an_object("p", ALICE, {"g": ("r", "c")}, s=None, t="s,g")
    reader = an_object("r", BOB, {"g": ("p", "t")}, c="g")
    tree = tree_of(source, reader)

    assert shape(tree) == [
        [("p/t", 0, 1, False)],
        [("r/c", 1, 1, False)],
        [("p/t", 2, 1, True)],
    ]
    loop, outside = told(source, reader)
    assert loop == (
        "streams p/t, r/c: a cycle; it ends where an update is not newer than what it triggers, "
        "and behind 8 borders between tenants at the latest"
    )
    assert "(r/c) comes over a border" in outside


def test_a_loop_of_tenants_by_input_ends_behind_eight_borders() -> None:
    source = an_object("p", ALICE, {"g": ("r", "c")}, by_input=True, s=None, t="s,g")
    reader = an_object("r", BOB, {"g": ("p", "t")}, by_input=True, c="g")
    tree = tree_of(source, reader)

    assert [each.borders for each in tree.nodes] == list(range(MAX_BORDERS + 1))
    assert not any(each.is_again for each in tree.nodes)


def test_nobody_s_tree_has_another_tenant_s_composites() -> None:
    """A tree behind a border has no more of the nodes before it than what it reads of them."""
    source = an_object("p", ALICE, s=None)
    reader = an_object("r", BOB, {"g": ("p", "s"), "z": ("o", "z")}, c="g,z")
    another = an_object("o", CAROL, {"g": ("p", "s")}, z="g")
    tree = tree_of(source, reader, another)

    nodes = {(str(each.stream), each.borders): each for each in tree.nodes}
    assert nodes["r/c", 1].only_read == ("z",)
    assert nodes["r/c", 2].only_read == ("g",)
    assert nodes["r/c", 2].source == StreamRef("o", "z")


def test_a_tree_over_borders_is_grown_up_to_a_number_too() -> None:
    source = an_object("p", ALICE, s=None, t="s")
    readers = [an_object(f"r{n}", BOB + n, {"g": ("p", "s")}, c="g") for n in range(3)]
    graph = Graph(in_order((source, *readers)))
    part = grow(StreamRef("p", "s"), graph, 3)

    assert (part.computations, part.complete) == (3, False)
    assert grow(StreamRef("p", "s"), graph, 4).complete


def test_reading_another_tenant_is_told_once_for_a_document() -> None:
    source = an_object("p", ALICE, s=None)
    reader = an_object("r", BOB, {"g": ("p", "s")}, c="g", d="g")

    assert told(reader, source) == [
        "streams c, d: what is read of other tenants (p/s) comes over a border, one hop of the "
        "log later; reading what one has written does not wait for that"
    ]
    assert told(source, reader) == []
