"""Stage 2 by itself: what each computation is given, and what ends before it computes."""

from __future__ import annotations

import orjson
from engine_builders import C, D, E, a_graph, a_service_object, document, new
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline.state.programs import Programs
from pipeline.steps import ARRIVAL, DIRECT_WRITE, Fold, NewUpdate, Place, Step, Verdict

from pipeline.stages.fetch import fetch
from pipeline.state.batch import BatchState
from sandbox.program import Assignment, Call, Computation
from servioticy.domain.graph import Graph
from servioticy.domain.model import LastUpdate, SensorUpdate, StreamRef


def arrival(update: NewUpdate, composite: StreamRef = C, number: int = 0) -> Step:
    """The update reaches a composite as the first of those it wakes."""
    offset, depth, path = update.place
    place = Place(offset, depth + 1, (*path, 0))
    return Step(place, composite, ARRIVAL, update.update, number)


def fetched(
    steps: list[Step], graph: Graph, state: BatchState
) -> tuple[list[Fold], list[Verdict]]:
    return fetch({steps[0].composite: steps}, graph, state, Programs())


def inputs(call: Call, number: int = 0) -> list[bytes | None]:
    """What the step of a call is given for each of its inputs."""
    step = call.steps[number]
    assert isinstance(step, Computation)
    return [None if each < 0 else call.updates[each] for each in step.inputs]


BOTH = a_graph({"c": ("d", "e")}, simple=("d", "e"))


@settings.get_profile("law")
@given(
    before=st.none() | st.integers(0, 20),
    history=st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=12),
)
def test_an_input_is_read_as_it_stood_at_the_place_of_the_reader(
    before: int | None, history: list[tuple[bool, int]]
) -> None:
    """However the updates of both inputs are mixed: the newest that came before, or equals it."""
    stored = None if before is None else LastUpdate(before, document(before))
    state = BatchState({E: stored})
    steps, expected, last = [], [], before
    for offset, (triggers, timestamp) in enumerate(history):
        if triggers:
            steps.append(arrival(new(D, offset, timestamp)))
            expected.append(last)
        else:
            state.add({E: [new(E, offset, timestamp)]})
            last = timestamp if last is None else max(last, timestamp)

    folds, ended = fetched(steps, BOTH, state) if steps else ([], [])

    calls = [fold.call for fold in folds]
    found = [inputs(call, number)[1] for call in calls for number in range(len(call.steps))]
    assert found == [None if each is None else document(each) for each in expected]
    assert ended == []
    for fold in folds:
        assert [each.inputs[1] for each in fold.steps] == expected
        assert len(fold.call.updates) == len(set(fold.call.updates))


def test_a_trigger_that_is_not_newer_than_the_last_output_ends_as_stale() -> None:
    state = BatchState({C: LastUpdate(5, document(5))})
    steps = [arrival(new(D, offset, timestamp)) for offset, timestamp in ((1, 5), (2, 6))]

    (fold,), (verdict,) = fetched(steps, BOTH, state)

    assert [each.step for each in fold.steps] == [steps[1]]
    assert (verdict.kind, verdict.place, verdict.inputs) == ("stale", steps[0].place, ())
    assert fold.call.previous_timestamp == 5


def test_a_composite_may_wait_until_all_inputs_have_an_update() -> None:
    graph = a_graph({"c": ("d", "e", "c")}, simple=("d", "e"), options={"missing": "skip"})
    state = BatchState({})
    steps = [arrival(new(D, 1, 1)), arrival(new(D, 3, 3))]
    state.add({E: [new(E, 2, 2)]})

    (fold,), (verdict,) = fetched(steps, graph, state)

    assert (verdict.kind, verdict.inputs) == ("missing", (1, None, None))
    assert [each.inputs for each in fold.steps] == [(3, 2, None)]


def test_a_direct_write_is_assigned_at_its_place_among_the_computations() -> None:
    update = SensorUpdate(C, 9, document(9))
    steps = [
        arrival(new(D, 1, 1)),
        Step(Place(2), C, DIRECT_WRITE, update),
        arrival(new(D, 3, 10)),
    ]

    (fold,), _ended = fetched(steps, BOTH, BatchState({}))

    assert [type(each) for each in fold.call.steps] == [Computation, Assignment, Computation]
    assignment = fold.call.steps[1]
    assert isinstance(assignment, Assignment)
    assert fold.call.updates[assignment.update] == document(9)
    assert assignment.timestamp == 9


def test_a_group_is_its_newest_member_and_of_equals_the_first() -> None:
    reader = a_service_object({"c": ("d", "g")}, groups={"g": (["one", "two"], "d")}, sequence=2)
    one, two = (a_service_object(id_=id_, sequence=n) for n, id_ in enumerate(("one", "two")))
    graph = Graph([one, two, reader])
    first, second = StreamRef("one", "d"), StreamRef("two", "d")
    state = BatchState({first: LastUpdate(4, b"first"), second: LastUpdate(4, b"second")})
    state.add({second: [new(second, 2, 5)]})
    steps = [arrival(new(D, 1, 1)), arrival(new(D, 3, 3))]

    (fold,), _ended = fetched(steps, graph, state)

    assert [inputs(fold.call, number)[1] for number in (0, 1)] == [b"first", document(5)]


def test_by_input_a_source_is_stale_only_by_its_own_last_use() -> None:
    graph = a_graph({"c": ("d", "e")}, simple=("d", "e"), options={"staleness": "input"})
    uses = orjson.dumps({"so/d": 3, "so/e": 100})
    state = BatchState({C: LastUpdate(100, document(1), uses), E: LastUpdate(100, document(2))})
    steps = [arrival(new(D, 1, 3)), arrival(new(D, 2, 4))]

    (fold,), (verdict,) = fetched(steps, graph, state)

    assert (verdict.kind, verdict.place.offset) == ("stale", 1)
    (step,) = fold.call.steps
    assert isinstance(step, Computation)
    assert step.timestamp == 101, "one tick after the last output"
    assert [orjson.loads(each.uses or b"") for each in fold.steps] == [{"so/d": 4, "so/e": 100}]


def test_composites_without_steps_that_compute_have_no_fold() -> None:
    state = BatchState({C: LastUpdate(5, document(5))})

    folds, ended = fetched([arrival(new(D, 1, 1))], BOTH, state)

    assert folds == []
    assert len(ended) == 1
