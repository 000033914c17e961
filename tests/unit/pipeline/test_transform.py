"""Stage 3 by itself: what comes out of folds, and how each computation ended."""

from __future__ import annotations

import msgspec
import pytest
from engine_builders import C, D, FakeSandbox, a_service_object, document, new
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline.state.programs import Programs
from pipeline.steps import ARRIVAL, DIRECT_WRITE, Fold, Place, Step

from pipeline.limits import NO_LIMITS, Limits
from pipeline.sharing.spending import Spending
from pipeline.stages.fetch import fetch
from pipeline.stages.transform import transform
from pipeline.state.batch import BatchState
from pipeline.state.decided import Decided
from sandbox import TookTooLong
from sandbox.program import Fault, Value
from servioticy.domain.graph import Graph
from servioticy.domain.model import SensorUpdate, StreamRef
from servioticy.domain.records import EmittedRecord

NOTHING_DECIDED = Decided()
X = StreamRef("other", "x")
THEIRS = a_service_object(
    {"x": ("g",)}, id_="other", groups={"g": (["so"], "d")}, tenant=2, sequence=1
)
GRAPH = Graph([a_service_object({"c": ("d",)}), THEIRS])


def arrivals(*timestamps: int, composite: StreamRef = C) -> list[Step]:
    """Updates of `d` with these timestamps reach a composite, one after the other."""
    return [
        Step(Place(offset, 1, (0,)), composite, ARRIVAL, new(D, offset, timestamp).update, 0)
        for offset, timestamp in enumerate(timestamps)
    ]


def write(offset: int, timestamp: int) -> Step:
    update = SensorUpdate(C, timestamp, document(timestamp))
    return Step(Place(offset), C, DIRECT_WRITE, update)


def folds_of(**steps: list[Step]) -> list[Fold]:
    by_ref = {{"c": C, "x": X}[name]: theirs for name, theirs in steps.items()}
    return fetch(by_ref, GRAPH, BatchState({}), Programs())[0]


def spending_of(limits: Limits = NO_LIMITS) -> Spending:
    return Spending(limits, {0: 1})


def test_each_tenant_is_asked_once_for_all_its_folds() -> None:
    sandbox = FakeSandbox()
    folds = folds_of(c=arrivals(1), x=arrivals(1, composite=X))

    made, _ended = transform(folds, sandbox, NOTHING_DECIDED, spending_of())

    assert [(tenant, len(calls)) for tenant, calls, _ in sandbox.asked] == [("1", 1), ("2", 1)]
    assert set(made) == {C, X}


@settings.get_profile("law")
@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 9), st.sampled_from(["value", "filtered", "oom"])),
        min_size=1,
        max_size=12,
    )
)
def test_what_comes_out_is_in_order_of_place_and_every_computation_has_one_end(
    history: list[tuple[bool, int, str]],
) -> None:
    """Direct writes come out as they are; of the emitted ones the verdict tells the last."""
    answers = iter([kind for writes, _at, kind in history if not writes])
    steps, expected, last, ends = [], [], None, []
    for offset, (writes, timestamp, _kind) in enumerate(history):
        if writes:
            steps.append(write(offset, timestamp))
        else:
            (step,) = arrivals(timestamp)
            steps.append(step._replace(place=Place(offset, 1, (0,))))
    kinds = iter([kind for writes, _at, kind in history if not writes])
    for step in steps:
        timestamp = step.timestamp
        stale = last is not None and timestamp <= last
        if step.kind == DIRECT_WRITE:
            expected.append(step.place)
            last = timestamp if last is None else max(last, timestamp)
        elif stale:
            ends.append("stale")
        else:
            kind = next(kinds)
            ends.append("emitted" if kind == "value" else kind)
            if kind == "value":
                expected.append(step.place)
                last = timestamp

    def answer(step):
        kind = next(answers)
        return Value(step.floor, document(step.floor)) if kind == "value" else Fault(kind, "why")

    made, ended = transform(folds_of(c=steps), FakeSandbox(answer), NOTHING_DECIDED, spending_of())

    assert [each.place for each in made[C]] == expected
    assert sum(each.times for each in ended) == len(ends)
    assert {each.kind for each in ended} == set(ends)
    emitted = [each for each in ended if each.kind == "emitted"]
    assert [each.times for each in emitted] == [ends.count("emitted")] * len(emitted)
    assert all(each.place == max(p for p in expected if p.depth) for each in emitted)


def test_direct_writes_alone_need_no_sandbox() -> None:
    sandbox = FakeSandbox()

    made, ended = transform(folds_of(c=[write(1, 1)]), sandbox, NOTHING_DECIDED, spending_of())

    assert sandbox.asked == []
    assert [each.place for each in made[C]] == [Place(1)]
    assert ended == []


def test_a_stale_computation_has_no_inputs_and_others_tell_theirs() -> None:
    steps = arrivals(3, 2)

    _made, ended = transform(folds_of(c=steps), FakeSandbox(), NOTHING_DECIDED, spending_of())

    assert {each.kind: each.inputs for each in ended} == {
        "emitted": (3, None),
        "stale": (),
    }


def test_what_subscribers_got_counts_whatever_comes_out_now() -> None:
    """Of the place beyond which they got nothing, what comes out now counts."""
    (first, second) = arrivals(1, 2)
    record = EmittedRecord("so", "c", 1, 1, 1, msgspec.Raw(b'{"then":1}'), (0, 1, 0))
    decided = Decided([record])

    made, ended = transform(
        folds_of(c=[first, second]), FakeSandbox(lambda _s: Fault("timeout", "")), decided,
        spending_of(),
    )  # fmt: skip

    assert [each.update.document for each in made[C]] == [b'{"then":1}']
    assert sorted(each.kind for each in ended) == ["emitted", "timeout"]


def test_a_direct_write_is_no_computation_though_subscribers_got_it() -> None:
    record = EmittedRecord("so", "c", 1, 1, 1, msgspec.Raw(document(1)), (0, 0))

    made, ended = transform(
        folds_of(c=[write(0, 1)]), FakeSandbox(), Decided([record]), spending_of()
    )

    assert [each.update for each in made[C]] == [write(0, 1).update]
    assert ended == []


def test_scripts_get_no_more_time_than_their_tenant_has_left() -> None:
    sandbox = FakeSandbox()
    spending = spending_of(Limits(9, 9, tree_seconds=2.0, foreign=0.25))
    spending.seconds[1] = 0.5

    transform(
        folds_of(c=arrivals(1), x=arrivals(1, composite=X)),
        sandbox, NOTHING_DECIDED, spending, within=1.0,
    )  # fmt: skip
    transform(folds_of(c=arrivals(1)), sandbox, NOTHING_DECIDED, spending)

    assert [within for _tenant, _calls, within in sandbox.asked] == [1.0, 0.5, None]


def test_time_is_noted_of_scripts_that_take_too_long() -> None:
    def never(_step):
        raise TookTooLong(1.0, 0.5, False)

    spending = spending_of()
    with pytest.raises(TookTooLong):
        transform(folds_of(c=arrivals(1)), FakeSandbox(never), NOTHING_DECIDED, spending)

    assert spending.seconds[1] > 0
    assert spending.latest == 1
