"""Stage 1 by itself: which trees enter a region, and whom they do not wake."""

from __future__ import annotations

import pytest
from engine_builders import a_graph, a_service_object, document, logged

from pipeline.limits import NO_LIMITS
from pipeline.sharing.rules import ITS_SHARE, Rules, its_quota
from pipeline.sharing.spending import Spending
from pipeline.stages.dispatch import MAX_SHED_NOTED, NOBODY, dispatch
from sandbox.trees import Event
from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import Region
from servioticy.domain.model import StreamRef

ALL = Rules(NO_LIMITS)


def spending() -> Spending:
    return Spending(NO_LIMITS, {1: 1, 2: 2})


def an_event(node: int, *path: int, at: int = 1) -> Event:
    return Event(node, at, document(at), path)


def number_of(region: Region, name: str) -> int:
    return next(
        n for n, each in enumerate(region.streams) if each is not None and each.key == name
    )


def test_trees_come_in_order_of_the_log_and_each_breadth_first() -> None:
    """Whatever the order in which regions before have made what comes in."""
    (region,) = a_graph({"c": ("d",)}).regions()
    d = number_of(region, "so/d")
    last, first = an_event(d, 0, 1), an_event(d, 2)
    entered = {region: {1: [last, first], 0: [an_event(d)]}}

    ((found, numbers, trees),), ended = dispatch(
        entered, [logged(5, 1), logged(6, 1)], ALL, spending()
    )

    assert found is region
    assert numbers == [0, 1]
    assert trees == [[an_event(d)], [first, last]]
    assert ended == []


def test_a_region_in_which_nobody_is_woken_has_nothing_to_do() -> None:
    """A direct write of what nobody reads is stored, and that is all."""
    (region,) = a_graph({"c": ("d",)}).regions()
    entered = {region: {0: [an_event(number_of(region, "so/c"))]}}

    assert dispatch(entered, [logged(1, 1)], ALL, spending()) == ([], [])


def other_graph(*names: str) -> tuple[Graph, Region]:
    """Composites of tenant 2 read what tenant 1 sends."""
    theirs = a_service_object(
        dict.fromkeys(names, ("g",)),
        id_="other",
        groups={"g": (["so"], "d")},
        tenant=2,
        sequence=1,
    )
    graph = Graph([a_service_object(), theirs])
    (region,) = graph.regions()
    return graph, region


def test_refused_tenants_see_what_they_read_and_wake_by_their_own_updates() -> None:
    _graph, region = other_graph("x")
    d = number_of(region, "so/d")
    entered = {region: {0: [an_event(d)], 1: [an_event(d, at=2)]}}
    updates = [logged(1, 1), logged(2, 2, tenant=2)]

    ((_region, numbers, trees),), (verdict,) = dispatch(
        entered, updates, Rules(NO_LIMITS, refused={2: ITS_SHARE}), spending()
    )

    assert numbers == [0, 1]
    assert [event.only for tree in trees for event in tree] == [NOBODY, None]
    assert (verdict.composite.ref, verdict.kind) == (StreamRef("other", "x"), "over-share")
    assert (verdict.trigger.key, verdict.timestamp) == ("so/d", 1)


def test_who_is_over_a_quota_is_told_which() -> None:
    _graph, region = other_graph("x")
    entered = {region: {0: [an_event(number_of(region, "so/d"))]}}

    _, (verdict,) = dispatch(
        entered,
        [logged(1, 1)],
        Rules(NO_LIMITS, refused={2: its_quota("computations")}),
        spending(),
    )

    assert verdict.kind == "over-quota"
    assert "quota of computations" in verdict.message


def test_only_the_first_refused_composites_get_a_verdict() -> None:
    _graph, region = other_graph(*(f"x{number}" for number in range(MAX_SHED_NOTED + 5)))
    entered = {region: {0: [an_event(number_of(region, "so/d"))]}}

    rules, spent = Rules(NO_LIMITS, refused={2: ITS_SHARE}), spending()
    entering, ended = dispatch(entered, [logged(1, 1)], rules, spent)

    assert entering == []
    assert len(ended) == MAX_SHED_NOTED
    shares = spent.costs.by_runner(1.0)
    assert shares[2] == pytest.approx((1 + MAX_SHED_NOTED) * shares[1]), "and pays for them"
