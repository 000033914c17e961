"""Stage 3 by itself: whom it asks, what comes of the answers, and what is too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from engine_builders import D, a_graph, a_service_object, document, evaluators, logged
from plain_trees import Ends
from python_evaluator import PythonEvaluator

from pipeline.errors import BatchTooLarge, TreeTooLarge
from pipeline.growth import Asked, Entering, RegionOutput, Verdict
from pipeline.limits import NO_LIMITS, Limits
from pipeline.sharing import spending as spendings
from pipeline.sharing.rules import Rules
from pipeline.sharing.spending import BYTES_A_COMPUTATION, Spending
from pipeline.stages.fetch import fetch
from pipeline.stages.transform import transform
from pipeline.state.decided import Decided
from pipeline.work import LoggedUpdate
from sandbox import ProcessorSeconds, TookTooLong, trees
from sandbox.trees import Call, Event
from servioticy.domain.graph import Graph
from servioticy.domain.model import ServiceObject
from servioticy.domain.pauses import finished
from servioticy.domain.records import EmittedRecord

CHAIN = {"c": ("d",), "e": ("c",)}


class World:
    """Trees of updates of `so/d`, and what comes of them."""

    def __init__(
        self,
        *updates: LoggedUpdate,
        graph: Graph | None = None,
        limits: Limits = NO_LIMITS,
        alone: bool = False,
        emitted: Sequence[EmittedRecord] = (),
    ) -> None:
        self.updates = updates
        self.graph = graph or a_graph(CHAIN)
        self.rules = Rules(limits, alone)
        self.spending = Spending(limits, len(updates))
        self.decided = Decided(emitted)

    def asked(self) -> list[Asked]:
        """What regions of the lowest level are asked."""
        origin = self.graph.stream(D)
        self.graph.plan(origin)
        (entries,) = (
            finished(self.graph.whole([origin])) if self.rules.alone else (origin.entries,)
        )
        entering = [
            Entering(
                region,
                range(len(self.updates)),
                [
                    [Event(node, root.timestamp, root.document) for root in each.roots]
                    for each in self.updates
                ],
            )
            for region, node in entries
            if region.level == 0
        ]
        return fetch(entering, self.updates, self.graph, {}, self.rules)

    def transform(
        self, by: Any = None, within: float | None = None
    ) -> tuple[list[RegionOutput], list[Verdict]]:
        return transform(
            self.asked(),
            self.updates,
            by or evaluators(),
            self.decided,
            self.rules,
            self.spending,
            within,
        )


def kinds(ended: Sequence[Verdict]) -> dict[tuple[str, str], int]:
    return {(each.composite.key, each.kind): each.times for each in ended}


def failing(*kinds: str) -> PythonEvaluator:
    """An evaluator whose computations end so, one after the other; `value` is a value."""
    left = list(kinds)

    def compute(_trigger: object, _values: object) -> int:
        kind = left.pop(0)
        if kind != "value":
            raise Ends(kind)
        return 1

    return PythonEvaluator(compute)


def test_what_is_made_has_its_place_in_the_tree() -> None:
    new, ended = World(logged(5, 1), logged(6, 2)).transform()

    assert [
        (number, [(stream.key, timestamp, path) for stream, timestamp, _text, path, _ in updates])
        for _region, number, updates, _kept in new
    ] == [
        (0, [("so/c", 1, (0,)), ("so/e", 1, (0, 0))]),
        (1, [("so/c", 2, (0,)), ("so/e", 2, (0, 0))]),
    ]
    assert kinds(ended) == {("so/c", "emitted"): 2, ("so/e", "emitted"): 2}


def test_a_verdict_tells_its_last_trigger() -> None:
    """It came from outside, or from the region itself."""
    _new, ended = World(logged(5, 3), logged(6, 2), logged(7, 9)).transform()

    found = {(each.composite.key, each.kind): each for each in ended}
    assert set(found) == {("so/c", "emitted"), ("so/c", "stale"), ("so/e", "emitted")}
    stale, emitted = found["so/c", "stale"], found["so/e", "emitted"]
    assert (stale.trigger.key, stale.timestamp, stale.inputs) == ("so/d", 2, None)
    assert (emitted.trigger.key, emitted.timestamp) == ("so/c", 9)
    assert emitted.inputs is not None
    assert emitted.inputs[0] == 9


class Noting(PythonEvaluator):
    """An evaluator that notes for whom it is asked, and about how many regions."""

    def __init__(self) -> None:
        super().__init__(lambda *_: 1)
        self.noted: list[tuple[str, int]] = []

    def evaluate(self, tenant: str, calls: Sequence[Call], within: float | None = None):
        self.noted.append((tenant, len(calls)))
        return super().evaluate(tenant, calls, within)


def test_each_evaluator_is_asked_once_for_its_regions() -> None:
    mine = a_service_object({"c": ("d",), "e": ("d",)})
    by, another = Noting(), Noting()

    World(logged(1, 1), graph=Graph([_by_another(mine, "e")])).transform(of_knots(by, another))

    assert by.noted == another.noted == [("1", 1)]


def _by_another(service_object: ServiceObject, name: str) -> ServiceObject:
    """The same, one of whose composites has another evaluator."""
    definition = service_object.definition
    streams = tuple(
        replace(each, composite=replace(each.composite, evaluator="another"))
        if each.composite is not None and each.ref.stream == name
        else each
        for each in definition.streams
    )
    return replace(service_object, definition=replace(definition, streams=streams))


def a_knot() -> Graph:
    """`so/c` and `so/e` wake each other, and are computed by two evaluators."""
    return Graph([_by_another(a_service_object({"c": ("d", "e"), "e": ("c",)}), "e")])


def of_knots(by: PythonEvaluator, another: PythonEvaluator | None = None) -> dict[str, Any]:
    return {"javascript": by, "another": another or by}


def test_a_knot_is_taken_step_by_step_each_by_its_evaluator() -> None:
    by, another = Noting(), Noting()
    world = World(logged(1, 5), graph=a_knot())

    ((_region, _number, updates, _kept),), ended = world.transform(of_knots(by, another))

    assert [(stream.key, path) for stream, _at, _text, path, _ in updates] == [
        ("so/c", (0,)),
        ("so/e", (0, 0)),
    ]
    assert kinds(ended)["so/c", "stale"] == 1
    assert by.noted == another.noted == [("1", 1)]


def too_large(world: World, by: Any = None) -> int:
    with pytest.raises(TreeTooLarge) as raised:
        world.transform(by)
    return raised.value.key.offset


@pytest.mark.parametrize("limits", [Limits(9, 1), Limits(9, 9, 50)])
@pytest.mark.parametrize("graph", [a_graph(CHAIN), a_knot()], ids=["region", "knot"])
def test_a_tree_beyond_a_limit_is_to_be_taken_alone(limits: Limits, graph: Graph) -> None:
    """The first update makes nothing: only the tree of the second is too large."""
    world = World(logged(5, 1), logged(6, 2), graph=graph, limits=limits)
    by = failing("filtered", *["value"] * 9)

    assert too_large(world, of_knots(by)) == 6


def test_rows_are_counted_whatever_an_evaluator_says() -> None:
    """A script may have taken its process over."""

    class Liar:
        def processor_seconds(self, _tenant: str) -> ProcessorSeconds:
            return ProcessorSeconds()

        def evaluate(self, _tenant: str, calls: Sequence[Call], _within: object):
            made = trees.Made(0, 0, calls[0].trees[0][0].node - 1, 1, b"{}")
            return [trees.Grown([[made, made]], [])]

    assert too_large(World(logged(5, 1), limits=Limits(9, 1)), {"javascript": Liar()}) == 5


def test_several_trees_with_too_much_together_are_a_batch_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spendings, "MAX_BATCH_COMPUTATIONS", 3)

    with pytest.raises(BatchTooLarge):
        World(logged(1, 1), logged(2, 2)).transform()
    World(logged(1, 1)).transform()


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        (Limits(1, 9), "hop-limit"),
        (Limits(9, 1), "computation-limit"),
        (Limits(9, 9, 1), "size-limit"),
        (Limits(9, 9, tree_seconds=-1.0), "time-limit"),
    ],
    ids=str,
)
def test_alone_what_is_beyond_a_limit_ends_with_its_verdict(limits: Limits, kind: str) -> None:
    new, ended = World(logged(5, 1), limits=limits, alone=True).transform()

    if kind == "time-limit":
        assert kinds(ended) == {("so/c", kind): 1}
        return
    assert kinds(ended) == {("so/c", "emitted"): 1, ("so/e", kind): 1}
    ((_region, _number, updates, _kept),) = new
    assert [stream.key for stream, *_ in updates] == ["so/c"]


def test_what_subscribers_got_counts_whatever_comes_out_now() -> None:
    """Of the place beyond which they got nothing, what comes out now counts."""
    then = msgspec.Raw(b'{"then":1}')
    emitted = [
        EmittedRecord("so", "d", 1, 1, 1, msgspec.Raw(document(1)), (5, 0)),
        EmittedRecord("so", "c", 1, 1, 1, then, (5, 1, 0)),
    ]
    world = World(logged(5, 1), alone=True, emitted=emitted)

    new, ended = world.transform({"javascript": failing("timeout", "timeout")})

    ((_region, _number, updates, _kept),) = new
    assert [text for _stream, _at, text, *_ in updates] == [b'{"then":1}']
    assert kinds(ended) == {("so/c", "emitted"): 1, ("so/e", "timeout"): 1}


def test_what_subscribers_did_not_get_is_nothing_again() -> None:
    emitted = [
        EmittedRecord("so", "d", 1, 1, at, msgspec.Raw(document(at)), (offset, 0))
        for offset, at in ((5, 1), (6, 2))
    ]
    world = World(logged(5, 1), alone=True, emitted=emitted)

    assert kinds(world.transform()[1]) == {("so/c", "timeout"): 1}


def test_scripts_get_no_more_time_than_their_tenant_has_left() -> None:
    by = evaluators()["javascript"]
    assert isinstance(by, PythonEvaluator)
    limits = Limits(9, 9, tree_seconds=2.0)

    def asked(within: float | None, spent: float) -> float | None:
        world = World(logged(1, 1), limits=limits)
        world.spending.seconds = spent
        world.transform({"javascript": by}, within)
        return by.asked[-1][2]

    assert asked(1.0, 0.5) == pytest.approx(1.0, abs=0.2)
    assert asked(9.0, 0.5) == 1.5
    assert asked(None, 9.0) is None


def test_time_is_noted_of_scripts_that_take_too_long() -> None:
    def never(*_arguments: object) -> int:
        raise TookTooLong(1.0, 0.5)

    world = World(logged(1, 1))
    with pytest.raises(TookTooLong):
        world.transform({"javascript": PythonEvaluator(never)})

    assert world.spending.seconds > 0


class Costly(PythonEvaluator):
    """An evaluator that takes so much of the processor each time that a tenant's are grown."""

    def __init__(self, costs: Mapping[int, ProcessorSeconds]) -> None:
        super().__init__(lambda *_: 1)
        self._costs = costs

    def is_ready(self, _tenant: str) -> bool:
        return True

    def processor_seconds(self, tenant: str) -> ProcessorSeconds:
        cost = self._costs.get(int(tenant), ProcessorSeconds())
        times = sum(asked == tenant for asked, _calls, _within in self.asked)
        return ProcessorSeconds(cost.programs * times, cost.starts * times)


@pytest.mark.parametrize("alone", [False, True])
def test_what_scripts_take_of_the_processor_is_noted(alone: bool) -> None:
    """However often they are asked in a tree."""
    world = World(logged(1, 1), graph=a_knot(), alone=alone)
    world.transform(of_knots(Costly({1: ProcessorSeconds(0.25, 0.5)})))

    asked = 2
    assert world.spending.processor == pytest.approx(asked * 0.25, abs=0.1)
    assert world.spending.preparing == pytest.approx(asked * 0.5)


def test_what_a_piece_makes_is_counted() -> None:
    """What was too deep was no computation."""
    world = World(logged(1, 1), logged(2, 2), limits=NO_LIMITS._replace(hops=1))
    new, _ended = world.transform()

    size = sum(len(text) for each in new for _stream, _at, text, *_ in each.updates)
    assert size > 0
    assert world.spending.work == pytest.approx(2 + 2 + size / BYTES_A_COMPUTATION)
