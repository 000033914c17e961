"""Rounds by themselves: each composite after all that it reads, loops one step at a time."""

from __future__ import annotations

from engine_builders import C, D, E, a_graph, new
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline.rounds import Waiting, rounds
from pipeline.steps import ARRIVAL, DIRECT_WRITE, Place, Step

from pipeline.state.batch import BatchState
from servioticy.domain.graph import Graph
from servioticy.domain.model import StreamRef


def step(composite: StreamRef, offset: int, *path: int) -> Step:
    place = Place(offset, len(path), path)
    return Step(place, composite, ARRIVAL, new(D, offset, offset).update, 0)


def all_rounds(
    waiting: Waiting, graph: Graph, state: BatchState | None = None
) -> list[list[tuple[StreamRef, list[Place]]]]:
    plan = graph.plan([D])
    return [
        [(ref, [each.place for each in steps]) for ref, steps in each.items()]
        for each in rounds(waiting, plan.levels, graph, state or BatchState({}))
    ]


def test_a_composite_comes_after_those_it_reads_each_for_the_whole_batch() -> None:
    graph = a_graph({"e": ("c",), "c": ("d",)})
    waiting = Waiting()
    waiting.add({E: [step(E, 1, 0, 0)]})
    waiting.add({C: [step(C, 2, 0), step(C, 1, 0)]})

    assert all_rounds(waiting, graph) == [
        [(C, [Place(1, 1, (0,)), Place(2, 1, (0,))])],
        [(E, [Place(1, 2, (0, 0))])],
    ]


def test_what_comes_in_a_round_is_evaluated_in_a_later_one() -> None:
    graph = a_graph({"c": ("d",), "e": ("c",)})
    waiting = Waiting()
    waiting.add({C: [step(C, 1, 0)]})
    evaluated = []
    for each in rounds(waiting, graph.plan([D]).levels, graph, BatchState({})):
        evaluated += list(each)
        if C in each:
            waiting.add({E: [step(E, 1, 0, 0)]})

    assert evaluated == [C, E]


@settings.get_profile("law")
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.booleans()), max_size=20))
def test_in_a_loop_each_step_comes_at_its_place(arrived: list[tuple[int, int, bool]]) -> None:
    """Those too that arrive while the loop is evaluated: none before the one that caused it."""
    graph = a_graph({"c": ("d", "e"), "e": ("c",)})
    waiting, evaluated = Waiting(), []
    for offset, number, in_c in arrived:
        ref = C if in_c else E
        waiting.add({ref: [step(ref, offset, number)]})

    for each in rounds(waiting, graph.plan([D]).levels, graph, BatchState({})):
        ((ref, (one,)),) = each.items()
        evaluated.append(one.place)
        if one.place.depth < 3:
            other = E if ref == C else C
            path = (*one.place.path, 1)
            waiting.add({other: [step(other, one.place.offset, *path)]})

    assert evaluated == sorted(evaluated)
    assert len(evaluated) == 3 * len(arrived)


def test_where_a_composite_settles_only_the_last_path_of_each_tree_is_left() -> None:
    graph = a_graph({"c": ("d",)}, options={"diamonds": "settle"})
    waiting, state = Waiting(), BatchState({})
    write = Step(Place(1), C, DIRECT_WRITE, new(C, 1, 1).update)
    waiting.add({C: [step(C, 1, 0), step(C, 1, 1), step(C, 2, 0), write]})

    assert all_rounds(waiting, graph, state) == [
        [(C, [Place(1), Place(1, 1, (1,)), Place(2, 1, (0,))])]
    ]
    (ending,) = state.endings
    assert (ending.last.kind, ending.last.place) == ("superseded", Place(1, 1, (0,)))
