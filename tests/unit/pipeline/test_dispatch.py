"""Stage 1 by itself: who is woken by new updates, and where the limits cut."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from engine_builders import C, D, a_graph, a_service_object, new
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline.steps import ARRIVAL, NewUpdate, Place, Step
from test_serial_law import graphs, platform_with

from pipeline.errors import BatchTooLarge, TreeTooLarge
from pipeline.limits import NO_LIMITS, Limits
from pipeline.sharing import spending as spendings
from pipeline.sharing.spending import Spending
from pipeline.stages.dispatch import MAX_SHED_NOTED, Rules, dispatch
from sandbox import argument_names
from servioticy.domain.graph import Graph
from servioticy.domain.model import SensorUpdate, StreamRef

CHAIN = a_graph({"c": ("d",), "e": ("c",)})


def spending_of(*offsets: int, limits: Limits = NO_LIMITS, tenant: int = 1) -> Spending:
    return Spending(limits, dict.fromkeys(offsets, tenant))


@settings.get_profile("law")
@given(data=st.data())
def test_every_update_arrives_once_at_every_input_that_reads_it(data: st.DataObject) -> None:
    """Each of them at a place of its own: its number among those the update wakes ends it."""
    objects, codes = data.draw(graphs(cycles=True))
    platform = platform_with(objects, codes)
    store = platform.partition_store(argument_names)
    for kept in platform.state.service_objects.values():
        kept.active_version = 1
    graph = Graph(store.service_objects([each.id for each in objects]))
    refs = sorted(platform.state.streams)
    updates = defaultdict(list)
    offsets = data.draw(st.integers(1, 6))
    for offset in range(offsets):
        ref = StreamRef(*data.draw(st.sampled_from(refs)))
        path = tuple(data.draw(st.lists(st.integers(0, 3), max_size=3)))
        place = Place(offset, len(path), path)
        updates[ref].append(NewUpdate(place, SensorUpdate(ref, offset, b"{}")))

    arrivals, ended = dispatch(updates, graph, spending_of(*range(offsets)), Rules(NO_LIMITS))

    expected = [
        Step(Place(offset, depth + 1, (*path, n)), wake.composite, ARRIVAL, update, wake.input)
        for ref, theirs in updates.items()
        for (offset, depth, path), update, _uses in theirs
        for n, wake in enumerate(graph.wakes(ref))
    ]
    found = [(ref, step) for ref, steps in arrivals.items() for step in steps]
    assert Counter(found) == Counter((step.composite, step) for step in expected)
    assert len({step.place for _ref, step in found}) == len(found)
    assert ended == []


def test_what_is_too_deep_ends_and_is_not_counted() -> None:
    spending = spending_of(7)
    deep = new(C, 7, 1, depth=2, path=(0, 0))

    arrivals, (verdict,) = dispatch({C: [deep]}, CHAIN, spending, Rules(Limits(2, 99)))

    assert not any(arrivals.values())
    assert (verdict.kind, verdict.message) == ("hop-limit", "more than 2 hops")
    assert verdict.place == Place(7, 3, (0, 0, 0))
    assert not spending.computations


def test_a_tree_with_too_many_computations_is_to_be_taken_alone() -> None:
    limits = Limits(99, 1)
    spending = spending_of(7, 8, limits=limits)
    dispatch({D: [new(D, 7, 1), new(D, 8, 1)]}, CHAIN, spending, Rules(limits))

    with pytest.raises(TreeTooLarge) as raised:
        dispatch({C: [new(C, 8, 1, 1, (0,))]}, CHAIN, spending, Rules(limits))
    assert raised.value.offset == 8


def test_alone_what_is_too_much_ends_with_its_verdict() -> None:
    limits = Limits(99, 1)
    spending, rules = spending_of(7, limits=limits), Rules(limits, alone=True)
    first, _ = dispatch({D: [new(D, 7, 1)]}, CHAIN, spending, rules)

    arrivals, (verdict,) = dispatch({C: [new(C, 7, 1, 1, (0,))]}, CHAIN, spending, rules)

    assert [step.place for step in first[C]] == [Place(7, 1, (0,))]
    assert not any(arrivals.values())
    assert verdict.kind == "computation-limit"


def test_several_trees_with_too_much_together_are_a_batch_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spendings, "MAX_BATCH_COMPUTATIONS", 2)
    updates = [new(D, offset, 1) for offset in (1, 2, 3)]

    with pytest.raises(BatchTooLarge):
        dispatch({D: updates}, CHAIN, spending_of(1, 2, 3), Rules(NO_LIMITS))


def test_composites_of_refused_tenants_are_not_woken_but_by_their_own() -> None:
    mine = a_service_object({"c": ("d",)})
    theirs = a_service_object(
        {"x": ("g",)}, id_="other", groups={"g": (["so"], "d")}, tenant=2, sequence=1
    )
    graph = Graph([mine, theirs])
    spending = Spending(NO_LIMITS, {1: 1, 2: 2})
    rules = Rules(NO_LIMITS, refused={2})

    arrivals, ended = dispatch({D: [new(D, 1, 1), new(D, 2, 2)]}, graph, spending, rules)

    x = StreamRef("other", "x")
    assert [step.place.offset for step in arrivals[C]] == [1, 2]
    assert [step.place for step in arrivals[x]] == [Place(2, 1, (1,))]
    assert [(each.composite, each.kind) for each in ended] == [(x, "over-share")]
    assert ended[0].place == Place(1, 1, (1,))


def test_only_the_first_refused_composites_get_a_verdict() -> None:
    names = [f"x{number}" for number in range(MAX_SHED_NOTED + 5)]
    theirs = a_service_object(
        dict.fromkeys(names, ("g",)), id_="other", groups={"g": (["so"], "d")}, tenant=2
    )
    graph = Graph([a_service_object(), theirs])

    arrivals, ended = dispatch(
        {D: [new(D, 1, 1)]}, graph, spending_of(1), Rules(NO_LIMITS, refused={2})
    )

    assert not arrivals
    assert len(ended) == MAX_SHED_NOTED
