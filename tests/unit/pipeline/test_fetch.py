"""Stage 2 by itself: last updates and bounds for the trees of a region."""

from __future__ import annotations

from collections.abc import Mapping

from engine_builders import C, D, a_graph, a_service_object, document, logged

from pipeline.growth import Asked, Entering
from pipeline.limits import NO_LIMITS, Limits
from pipeline.sharing.rules import Rules
from pipeline.stages.fetch import fetch
from pipeline.work import LoggedUpdate
from sandbox.trees import Bounds, Event
from servioticy.domain.graph import Graph
from servioticy.domain.model import LastUpdate, StreamRef

B = StreamRef("so", "b")


def last(at: int, state: bytes | None = None) -> LastUpdate:
    return LastUpdate(at, document(at), state)


def fetched(
    graph: Graph,
    *updates: LoggedUpdate,
    known: Mapping[StreamRef, LastUpdate | None] | None = None,
    limits: Limits = NO_LIMITS,
) -> list[Asked]:
    """What is asked of the regions that the updates enter."""
    trees: dict = {}
    for number, each in enumerate(updates):
        (root,) = each.roots
        origin = graph.stream(root.origin)
        graph.plan(origin)
        for region, node in origin.entries:
            event = Event(node, root.timestamp, root.document)
            trees.setdefault(region, {})[number] = [event]
    entering = [Entering(region, list(by), list(by.values())) for region, by in trees.items()]
    return fetch(entering, updates, graph, known or {}, Rules(limits))


def names(asked: Asked) -> dict[str, tuple[int, bytes | None, bytes | None]]:
    return {
        asked.region.stream(each.node).key: (each.timestamp, each.document, each.state)
        for each in asked.call.lasts
    }


def test_a_region_gets_the_last_updates_that_its_trees_can_read() -> None:
    """Documents and states as far as somebody looks at them; no update is none."""
    graph = a_graph({"c": ("d", "b"), "e": ("c",)}, simple=("d", "b"))
    known = {C: last(3, b"{}"), B: last(4), D: None}

    (asked,) = fetched(graph, logged(1, 9), known=known)

    assert names(asked) == {"so/c": (3, None, b"{}"), "so/b": (4, document(4), None)}
    assert asked.call.trees == [[Event(asked.call.trees[0][0].node, 9, document(9))]]


def test_of_a_group_it_gets_the_newest() -> None:
    """The first of equals; what others have matters only once they have a new one."""
    devices = [a_service_object(id_=f"so{n}", sequence=n) for n in range(4)]
    groups = {"g": ([f"so{n}" for n in range(3)], "d"), "h": (["so3"], "d")}
    mean = a_service_object({"c": ("g", "h")}, id_="mean", simple=(), groups=groups)
    known = {StreamRef(f"so{n}", "d"): last(at) for n, at in enumerate((3, 5, 5))}

    (asked,) = fetched(Graph([*devices, mean]), logged(1, 9, StreamRef("so3", "d")), known=known)

    assert names(asked) == {"so1/d": (5, document(5), None)}


def test_several_streams_that_enter_a_region_need_what_each_needs() -> None:
    graph = a_graph({"c": ("d", "b"), "e": ("c",), "f": ("b",)}, simple=("d", "b"))
    known = {each: last(1) for each in (B, C, D, StreamRef("so", "e"), StreamRef("so", "f"))}

    (asked,) = fetched(graph, logged(1, 9), logged(2, 9, B), known=known)

    assert set(names(asked)) == {"so/b", "so/c", "so/d", "so/e", "so/f"}


def test_a_tree_of_several_regions_has_a_part_of_the_limits_in_each() -> None:
    """Where each keeps to that, all keep to the limits."""
    settling = a_service_object(
        {"s": ("g", "h")},
        id_="last",
        simple=(),
        groups={"g": (["so"], "d"), "h": (["so"], "c")},
        options={"diamonds": "settle"},
        sequence=1,
    )
    graph = Graph([a_service_object({"c": ("d",)}), settling])

    first, second = fetched(graph, logged(1, 9), limits=Limits(7, 11, 101))

    assert first.call.bounds == second.call.bounds == Bounds(7, 5)
    assert first.most_bytes == second.most_bytes == 50
