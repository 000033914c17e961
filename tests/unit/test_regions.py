"""How a component is cut into regions, and what a tree in one of them can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from engine_builders import a_service_object
from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain import graph as graphs
from servioticy.domain.cutting import cutting
from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import Region, Wake
from servioticy.domain.model import ServiceObject, StreamRef
from servioticy.domain.pauses import finished
from servioticy.domain.plans import Plan
from servioticy.domain.regions import Shared


def refs(region: Region) -> set[str]:
    return {each.key for _number, each in region.composites()}


def cut(*service_objects: ServiceObject) -> list[tuple[int, set[str]]]:
    """Level and composites of each region."""
    return [(each.level, refs(each)) for each in Graph(service_objects).regions()]


def plan_of(graph: Graph, stream: str = "d", id_: str = "so") -> Plan:
    return graph.plan(graph.stream(StreamRef(id_, stream)))


def reader(id_: str, of: tuple[str, str], sequence: int, evaluator: str = "") -> ServiceObject:
    """An object with a composite `c` that reads another object's stream."""
    owner, stream = of
    made = a_service_object(
        {"c": ("g",)}, id_=id_, simple=(), groups={"g": ([owner], stream)}, sequence=sequence
    )
    return by(evaluator, made) if evaluator else made


def by(evaluator: str, service_object: ServiceObject, *names: str) -> ServiceObject:
    """The same, where these composites, or all, are computed by another evaluator."""
    definition = service_object.definition
    streams = tuple(
        replace(each, composite=replace(each.composite, evaluator=evaluator))
        if each.composite is not None and (not names or each.ref.stream in names)
        else each
        for each in definition.streams
    )
    return replace(service_object, definition=replace(definition, streams=streams))


def test_what_hangs_together_is_one_region() -> None:
    """A chain, and what reads the same stream beside it."""
    assert cut(a_service_object({"c": ("d",), "e": ("c",), "f": ("d",)})) == [
        (0, {"so/c", "so/e", "so/f"})
    ]


def test_what_has_nothing_in_common_is_not() -> None:
    found = cut(a_service_object({"c": ("d",), "e": ("b",)}, simple=("d", "b")))

    assert sorted(found, key=str) == [(0, {"so/c"}), (0, {"so/e"})]


def test_each_evaluator_has_regions_of_its_own() -> None:
    """Also where a tree comes back to one: behind what it reads there."""
    mine = a_service_object({"c": ("d",)})
    other = reader("other", ("so", "c"), 1, "windows")
    back = reader("back", ("other", "c"), 2)
    straight = reader("straight", ("so", "c"), 3)

    assert cut(mine, other, back, straight) == [
        (0, {"so/c", "straight/c"}),
        (1, {"other/c"}),
        (2, {"back/c"}),
    ]
    assert cut(by("windows", a_service_object({"c": ("d",), "e": ("c",)}), "e")) == [
        (0, {"so/c"}),
        (1, {"so/e"}),
    ]


def test_what_settles_comes_behind_a_border() -> None:
    """All that arrives there is known when its region is evaluated."""
    first = a_service_object({"a": ("d",), "b": ("d", "a")})
    last = a_service_object(
        {"s": ("g", "h")},
        id_="last",
        simple=(),
        groups={"g": (["so"], "d"), "h": (["so"], "b")},
        options={"diamonds": "settle"},
        sequence=1,
    )
    graph = Graph([first, last, reader("behind", ("last", "s"), 2)])

    before, after = graph.regions()
    assert refs(before) == {"so/a", "so/b"}
    assert refs(after) == {"last/s", "behind/c"}
    assert [node.settles for node in after.wiring.nodes[:2]] == [True, False]


def test_in_a_circle_nothing_settles() -> None:
    circle = {"a": ("d", "b"), "b": ("a",)}
    (region,) = Graph([a_service_object(circle, options={"diamonds": "settle"})]).regions()

    assert not any(node.settles for node in region.wiring.nodes)


def test_a_circle_of_several_evaluators_is_a_knot() -> None:
    mine = a_service_object({"c": ("d", "g")}, groups={"g": (["other"], "c")})
    other = reader("other", ("so", "c"), 1, "windows")
    behind = reader("behind", ("so", "c"), 2)

    knot, after = Graph([mine, other, behind]).regions()
    assert refs(knot) == {"so/c", "other/c"}
    assert knot.evaluator is None
    assert knot.tenant == 1
    assert (refs(after), after.evaluator) == ({"behind/c"}, "javascript")


def test_equal_devices_share_one_wiring() -> None:
    """Whatever they are called; not where states name the streams."""
    devices = [a_service_object({"c": ("d",)}, id_=f"so{n}", sequence=n) for n in range(3)]
    first, second, _ = Graph(devices).regions()
    assert first.wiring is second.wiring
    assert first.names != second.names

    other = a_service_object({"c": ("d",)}, options={"missing": "skip"})
    assert Graph([other]).regions()[0].wiring.id != first.wiring.id
    named = [
        a_service_object({"c": ("d",)}, id_=f"so{n}", options={"staleness": "input"})
        for n in range(2)
    ]
    one, another = Graph(named).regions()
    assert one.wiring.id != another.wiring.id


def test_wakes_are_numbered_among_all_of_the_stream() -> None:
    """The numbers make paths, which have to compare across regions."""
    graph = Graph([a_service_object({"c": ("d",)}), reader("other", ("so", "d"), 1, "windows")])

    numbers = [
        wake.number
        for each in graph.regions()
        for node in each.wiring.nodes
        for wake in node.wakes
    ]
    assert sorted(numbers) == [0, 1]


def test_a_chain_needs_no_documents() -> None:
    """A trigger is its composite's only input: what was before it is never read."""
    graph = Graph([a_service_object({"c": ("d",), "e": ("c",)})])
    plan = plan_of(graph)
    ((region, node),) = plan.entries

    needs = graph.needs(region, node)
    assert [(region.stream(n).key, document) for n, document in needs.lasts] == [
        ("so/c", False),
        ("so/e", False),
    ]
    assert [each.key for each in plan.streams] == ["so/d", "so/c", "so/e"]


@pytest.mark.parametrize(
    ("reads", "needed"),
    [
        (("d", "c"), {"so/c": True}),
        (("d", "b"), {"so/c": False, "so/d": True, "so/b": True}),
    ],
    ids=["its own last output", "a second input"],
)
def test_documents_are_needed_of_what_is_read(
    reads: tuple[str, ...], needed: dict[str, bool]
) -> None:
    graph = Graph([a_service_object({"c": reads}, simple=("d", "b"))])
    ((region, node),) = plan_of(graph).entries

    found = graph.needs(region, node)
    assert {region.stream(n).key: document for n, document in found.lasts} == needed


def test_the_only_input_is_never_read_though_it_is_a_group() -> None:
    """So a mean over a large group costs no look at its members."""
    devices = [a_service_object(id_=f"so{n}", sequence=n) for n in range(3)]
    mean = a_service_object(
        {"c": ("g", "c")}, id_="mean", simple=(), groups={"g": (["so0", "so1", "so2"], "d")}
    )
    graph = Graph([*devices, mean])
    plan = plan_of(graph, id_="so0")

    assert not plan.groups
    assert {each.key for each in plan.streams} == {"so0/d", "mean/c"}


def test_a_plan_goes_through_all_regions() -> None:
    mine = a_service_object({"c": ("d",)})
    other = reader("other", ("so", "c"), 1, "windows")
    graph = Graph([mine, other, reader("back", ("other", "c"), 2)])
    plan = plan_of(graph)

    assert len(plan.entries) == 1
    assert {each.key for each in plan.streams} == {"so/d", "so/c", "other/c", "back/c"}
    assert plan.parts == 3


def test_what_goes_takes_its_plans_with_it() -> None:
    """As what is loaded instead may read something else."""
    graph = Graph(())
    graph.merge(Graph([a_service_object({"c": ("d",)})]))
    before = plan_of(graph)
    graph.drop({"so"})
    graph.merge(Graph([a_service_object({"c": ("d",), "e": ("c",)})]))

    after = plan_of(graph)
    assert len(before.streams) == 2
    assert len(after.streams) == 3


def test_what_is_taken_step_by_step_is_cut_out_once() -> None:
    """A tree that is always too large is computed alone with every update."""
    graph = Graph(())
    graph.merge(Graph([a_service_object({"c": ("d",)})]))
    origin = graph.stream(StreamRef("so", "d"))
    (((before, _node),),) = finished(graph.whole([origin]))

    assert finished(graph.whole([origin]))[0][0][0] is before
    graph.drop({"so"})
    graph.merge(Graph([a_service_object({"c": ("d",), "e": ("c",)})]))
    (((after, _node),),) = finished(graph.whole([graph.stream(StreamRef("so", "d"))]))
    assert refs(after) == {"so/c", "so/e"}


def test_plans_for_which_there_is_no_room_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MAX_REMEMBERED", 4)
    graph = Graph([a_service_object({"c": ("d",)}, id_=f"so{n}", sequence=n) for n in range(3)])
    first = plan_of(graph, id_="so0")
    assert plan_of(graph, id_="so0") is first

    plan_of(graph, id_="so1")
    assert plan_of(graph, id_="so0") is not first
    assert plan_of(graph, id_="so0") == first


edges = st.sets(st.sampled_from([(a, b) for a, b in product(range(6), repeat=2) if a != b]))


@given(
    edges,
    st.lists(
        st.tuples(st.sampled_from(["javascript", "windows"]), st.booleans()),
        min_size=6,
        max_size=6,
    ),
)
def test_regions_read_only_regions_of_lower_levels(
    edges: set[tuple[int, int]], kinds: list[tuple[str, bool]]
) -> None:
    """Whatever the graph; and all arrivals of what settles come from outside its region."""
    objects = [
        by(
            evaluator,
            a_service_object(
                {"c": tuple(f"g{a}" for a, b in edges if b == n) or ("d",)},
                id_=f"so{n}",
                groups={f"g{a}": ([f"so{a}"], "c") for a, b in edges if b == n},
                options={"diamonds": "settle" if settles else "first"},
                sequence=n,
            ),
        )
        for n, (evaluator, settles) in enumerate(kinds)
    ]
    graph = Graph(objects)

    regions = graph.regions()
    assert sorted(key for each in regions for key in refs(each)) == [f"so{n}/c" for n in range(6)]
    for a, b in edges:
        one, other = (graph.stream(StreamRef(f"so{n}", "c")) for n in (a, b))
        assert one.region is not None
        assert other.region is not None
        if one.region is other.region:
            assert not other.settles
        else:
            assert one.region.level < other.region.level


def test_regions_of_many_who_read_one_stream_are_found_in_one_pass() -> None:
    """A stream may have thousands of readers: for each, all the others are not asked."""
    asked = 0
    readers = [reader(f"r{n}", ("so", "d"), n, f"evaluator{n}") for n in range(1, 31)]
    graph = Graph([a_service_object(), *readers])
    wakes = graph.wakes

    def counted(ref: StreamRef) -> Sequence[Wake]:
        nonlocal asked
        asked += len(wakes(ref))
        return wakes(ref)

    known = {each: graph.stream(each) for each in graph.reachable([StreamRef("so", "d")])}
    finished(cutting(list(known.values()), known, counted, Shared()))

    assert len({each.region for each in known.values()}) == 30
    assert asked <= 2 * 30
