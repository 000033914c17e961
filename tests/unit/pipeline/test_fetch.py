"""Stage 2 by itself: last updates and bounds for the trees of a region."""

from __future__ import annotations

from collections.abc import Mapping

from engine_builders import C, D, a_graph, a_service_object, document, logged

from pipeline.growth import Asked, Entering
from pipeline.limits import NO_LIMITS, Limits
from pipeline.sharing.rules import Rules
from pipeline.sharing.spending import Spending
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
        origin = graph.stream(each.origin)
        graph.plan(origin)
        for region, node in origin.entries:
            event = Event(node, each.timestamp, each.document)
            trees.setdefault(region, {})[number] = [event]
    entering = [Entering(region, list(by), list(by.values())) for region, by in trees.items()]
    owners = {each.offset: each.tenant for each in updates}
    spending = Spending(limits, owners)
    return fetch(entering, updates, graph, known or {}, Rules(limits), spending)


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


def test_a_tenant_with_several_regions_in_a_tree_has_a_part_of_its_limits_in_each() -> None:
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


def test_in_the_tree_of_another_tenants_update_there_is_less() -> None:
    graph = a_graph({"c": ("d",)})
    limits = Limits(7, 10, 100, foreign=0.5)

    (own,) = fetched(graph, logged(1, 9), limits=limits)
    (mixed,) = fetched(graph, logged(1, 9), logged(2, 9, tenant=2), limits=limits)

    assert (own.call.bounds.computations, own.most_bytes) == (10, 100)
    assert (mixed.call.bounds.computations, mixed.most_bytes) == (5, 50)
