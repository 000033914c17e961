"""Service Objects that are alike: what is cut once for all is what each would be cut to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from engine_builders import a_service_object
from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain import patterns
from servioticy.domain.documents.stored import as_another
from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import KnownStream, Region
from servioticy.domain.model import InputRef, ServiceObject, StreamRef
from servioticy.domain.pauses import finished

NAMES = ("c0", "c1", "c2", "c3")
CHAIN = {"c": ("d",), "e": ("c", "d")}


def like(first: ServiceObject, number: int) -> ServiceObject:
    """Another one with the same definition, of another tenant and version, with other numbers."""
    id_ = f"like{number}"
    ids = {name: 1000 * number + each for name, each in first.stream_ids.items()}
    return replace(
        first,
        definition=as_another(first.definition, id_),
        tenant=first.tenant + number,
        version=first.version + number,
        stream_ids=ids,
        read_in=dict.fromkeys(list(ids)[:1], (number,)),
    )


def taken_in(graph: Graph, service_object: ServiceObject) -> bool:
    """Take it in as a partition does; whether that was by a pattern."""
    pattern = graph.pattern_of(service_object)
    if pattern is None:
        graph.merge_alone(finished(graph.component([service_object])), service_object)
        return False
    graph.copy(pattern, service_object)
    return True


def told(region: Region) -> Any:
    """All of a region."""
    streams = [each and each.ref for each in region.streams]
    facts = region.level, region.tenant, region.evaluator, region.names, region.leads_on
    return streams, facts, region.wiring


def all_of(graph: Graph, stream: KnownStream) -> Any:
    """All that is known of a stream."""
    plan = graph.plan(stream)
    ((whole,),) = (finished(graph.whole([stream])),)
    return (
        (stream.ref, stream.tenant, stream.version, stream.stream_id, stream.read_in),
        (stream.settles, stream.head, stream.key, stream.composite),
        stream.region and told(stream.region),
        *[
            [(told(region), node) for region, node in entries]
            for entries in (stream.crosses, stream.entries, plan.entries)
        ],
        [each.ref for each in plan.streams],
        (plan.groups, plan.parts),
        list(graph.wakes(stream.ref)),
        graph.reachable([stream.ref]),
        # A region of all that can be reached has wirings of its own.
        [(told(region)[:2], region.wiring.id, node) for region, node in whole],
    )


reads = st.sets(st.sampled_from([*NAMES, "d0", "d1"]), min_size=1, max_size=3)


@st.composite
def documents(draw: st.DrawFn) -> ServiceObject:
    """With circles, several evaluators, and options."""
    composites = {name: tuple(sorted(draw(reads))) for name in NAMES[: draw(st.integers(0, 4))]}
    known = composites.keys() | {"d0", "d1"}
    wired: Mapping[str, Sequence[str]] = {
        name: [each for each in read if each in known and each != name] or ["d0"]
        for name, read in composites.items()
    }
    options = {
        "diamonds": draw(st.sampled_from(["first", "settle"])),
        "missing": draw(st.sampled_from(["null", "skip"])),
    }
    made = a_service_object(wired, simple=("d0", "d1"), options=options)
    streams = tuple(
        replace(each, composite=replace(each.composite, evaluator=draw(st.sampled_from("ab"))))
        if each.composite is not None
        else each
        for each in made.definition.streams
    )
    return replace(made, definition=replace(made.definition, streams=streams))


@given(documents())
def test_a_copy_is_what_it_would_be_cut_to(first: ServiceObject) -> None:
    graph = Graph(())
    everybody = [first, like(first, 1), like(first, 2)]

    assert [taken_in(graph, each) for each in everybody] == [False, True, True]
    for each in everybody:
        alone = Graph([each])
        alone.regions()
        for stream in each.definition.streams:
            copied = graph.stream(stream.ref)
            assert all_of(graph, copied) == all_of(alone, alone.stream(stream.ref))


def test_all_that_is_large_is_shared() -> None:
    graph = Graph(())
    first = a_service_object(CHAIN)
    for each in (first, like(first, 1)):
        taken_in(graph, each)
    one, other = (
        graph.stream(StreamRef("so", "c")).region,
        graph.stream(StreamRef("like1", "c")).region,
    )

    assert one is not None
    assert other is not None
    assert one is not other
    assert one.wiring is other.wiring


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("reads a group", a_service_object({"c": ("g",)}, groups={"g": (["x"], "d")})),
        ("names its inputs", a_service_object(CHAIN, options={"staleness": "input"})),
    ],
)
def test_what_is_not_the_same_for_all_is_cut_for_each(name: str, made: ServiceObject) -> None:
    graph = Graph(())

    assert [taken_in(graph, each) for each in (made, like(made, 1))] == [False, False], name


def test_who_throws_dice_shares_no_program() -> None:
    made = a_service_object(CHAIN)
    streams = tuple(
        replace(each, composite=replace(each.composite, pre_filter="Math.random() < 1"))
        if each.composite is not None
        else each
        for each in made.definition.streams
    )
    made = replace(made, definition=replace(made.definition, streams=streams))
    graph = Graph(())

    assert [taken_in(graph, each) for each in (made, like(made, 1))] == [False, False]


def test_what_another_document_declares_is_not_found_in_a_copy() -> None:
    graph = Graph(())
    first = a_service_object(CHAIN)
    for each in (first, like(first, 1)):
        taken_in(graph, each)

    assert graph.knows(StreamRef("like1", "d"))
    assert not graph.knows(StreamRef("like1", "x"))
    assert not graph.knows(StreamRef("like2", "d"))
    assert not graph.knows(InputRef(StreamRef("like1", "d"), 3))
    assert graph.wakes(StreamRef("like1", "x")) == []
    assert graph.wakes(InputRef(StreamRef("like1", "d"), 3)) == ()


def test_with_the_last_of_them_goes_what_they_share() -> None:
    graph = Graph(())
    first, other = a_service_object(CHAIN), like(a_service_object(CHAIN), 1)
    for each in (first, like(first, 1)):
        taken_in(graph, each)
    graph.drop({"so"})

    assert not graph.knows(StreamRef("so", "d"))
    assert graph.pattern_of(first) is not None
    graph.drop({"like1"})
    assert graph.pattern_of(first) is None
    assert not taken_in(graph, other)


def test_plans_of_a_long_chain_are_not_all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are as many as its square."""
    monkeypatch.setattr(patterns, "MAX_PLANNED", 2)
    names = [f"c{n}" for n in range(20)]
    chain = {name: (read,) for name, read in zip(names, ["d", *names], strict=False)}
    graph = Graph(())
    first = a_service_object(chain)
    for each in (first, like(first, 1)):
        taken_in(graph, each)
    alone = Graph([first])
    for name, _again in product(("d", *names), range(2)):
        ref = StreamRef("so", name)
        found, expected = (each.plan(each.stream(ref)) for each in (graph, alone))
        assert [each.ref for each in found.streams] == [each.ref for each in expected.streams]

    pattern = graph.pattern_of(first)
    assert pattern is not None
    assert pattern.remembered <= 2 * len(chain) + 2 + len(chain)
