"""An instance: what it takes it finishes, gives back or buries, and it ends in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from workflow_builders import LIMITS, a_queue, a_workflow, an_atom

from functions import instance as instances
from functions.instance import Done, Instance, pause_ms
from functions.steps import Failure, Result, Task
from servioticy.domain.workflows.model import CUT, LOOK, Workflow
from servioticy.errors import Unavailable
from servioticy.ports.atoms import Atom, Product, Queue


class Queues:
    """What stands in a queue, and what is done with it; away as often as it is told to be."""

    def __init__(self, *batches: list[Atom]) -> None:
        self.batches = list(batches)
        self.said: list[tuple[Any, ...]] = []
        self.away = 0
        self.when_taken: Callable[[], None] = lambda: None

    def take(
        self, _queue: Queue, instance: int, most: int, now_ms: int, until_ms: int
    ) -> list[Atom]:
        self.said.append(("take", most, until_ms - now_ms))
        self.when_taken()
        return self.batches.pop(0) if self.batches else []

    def finish(
        self,
        _queue: Queue,
        instance: int,
        ids: Sequence[int],
        products: Sequence[Product],
        now_ms: int,
    ) -> int:
        self._answer()
        self.said.append(("finish", list(ids), list(products)))
        return len(ids)

    def collect(self, _queue: Queue, instance: int, ids: Sequence[int], now_ms: int) -> int:
        self.said.append(("collect", list(ids)))
        return len(ids)

    def give_back(
        self, _queue: Queue, instance: int, at_ms: Mapping[int, int], *, counts: bool
    ) -> None:
        self.said.append(("give back", dict(at_ms), counts))

    def bury(self, _queue: Queue, instance: int, reasons: Mapping[int, str], now_ms: int) -> None:
        self.said.append(("bury", dict(reasons)))

    def _answer(self) -> None:
        if self.away:
            self.away -= 1
            raise Unavailable("away")

    @property
    def did(self) -> list[tuple[Any, ...]]:
        """All but what was taken."""
        return [each for each in self.said if each[0] != "take"]


class Step:
    def __init__(self, *results: Result) -> None:
        self.results = list(results)
        self.worked: list[list[int]] = []

    def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
        self.worked.append([each.id for each in atoms])
        return self.results.pop(0) if self.results else Result({each.id: () for each in atoms})


class World:
    """An instance with all that it asks."""

    def __init__(
        self,
        queues: Queues,
        step: Step,
        workflow: Workflow | None = None,
        queue: Queue = a_queue(),  # noqa: B008
    ) -> None:
        self.now = 1_000.0
        self.noted: list[Done] = []
        task = Task(queue, workflow or a_workflow("clean", "sort"), "1.0")
        self.instance = Instance(
            7, task, step, queues, LIMITS, self._note, lambda: self.now, self._sleep
        )

    def _note(self, _task: Task, done: Done) -> None:
        self.noted.append(done)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


def test_one_works_until_nothing_is_there_and_takes_more_where_it_is_quick() -> None:
    queues = Queues([an_atom(1)], [an_atom(2), an_atom(3)])
    step = Step()
    World(queues, step).instance.run()

    assert step.worked == [[1], [2, 3]]
    assert [each[1] for each in queues.said if each[0] == "take"] == [1, 2, 4]
    assert [each[:2] for each in queues.did] == [("finish", [1]), ("finish", [2, 3])]


def test_what_is_made_goes_along_every_link_in_its_order() -> None:
    links = [["source", "a"], ["a", "b"], ["a", "sink"], ["b", "sink"]]
    code = {"code": "x => x"}
    workflow = a_workflow(procedures={"a": code, "b": code | {"delay": 2}}, links=links)
    queues = Queues([an_atom(1)])
    world = World(queues, Step(Result({1: [b'{"n":1}', b'{"n":2}']})), workflow)
    world.instance.run()

    ((_, ids, products),) = queues.did
    assert ids == [1]
    assert products == [
        Product(1, 1, 2_000, b'{"n":1}'),
        Product(1, 2, 0, b'{"n":1}'),
        Product(1, 1, 2_000, b'{"n":2}'),
        Product(1, 2, 0, b'{"n":2}'),
    ]
    assert world.noted == [Done(1, 4, 0, 0, 0)]


def test_large_products_are_stored_in_parts_and_no_atom_is_parted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(instances, "MAX_STORED_BYTES", 10)
    made = {each: [b'{"n":12}', b'{"n":34}'] for each in (1, 2)}
    queues = Queues([an_atom(1), an_atom(2)])
    World(queues, Step(Result(made))).instance.run()

    assert [(ids, len(products)) for _, ids, products in queues.did] == [([1], 2), ([2], 2)]


@pytest.mark.parametrize(
    ("attempts", "is_hopeless", "what"),
    [(4, False, "give back"), (5, False, "bury"), (1, True, "bury")],
)
def test_what_fails_is_tried_again_until_it_is_dead(
    attempts: int, is_hopeless: bool, what: str
) -> None:
    queues = Queues([an_atom(1, attempts)])
    failed = Result(failed={1: Failure("script-error: x", is_hopeless)})
    world = World(queues, Step(failed))
    world.instance.run()

    assert queues.did[0][0] == what
    if what == "bury":
        assert queues.did == [("bury", {1: "script-error: x"})]
    else:
        assert queues.did == [("give back", {1: 1_000_000 + pause_ms(attempts)}, True)]
    assert world.noted == [Done(0, 0, 1, what == "bury", 0)]


def test_pauses_double_and_have_an_end() -> None:
    assert [pause_ms(each) for each in (1, 2, 3, 20)] == [1_000, 2_000, 4_000, 300_000]


def test_what_was_not_tried_comes_back_uncounted_and_the_instance_ends() -> None:
    queues = Queues([an_atom(1)], [an_atom(2)])
    World(queues, Step(Result(later={1: 500}))).instance.run()

    assert queues.did == [("give back", {1: 1_000_500}, False)]
    assert len(queues.batches) == 1


def test_at_the_end_of_its_life_it_takes_nothing_any_more() -> None:
    """A millisecond before, it does."""
    queues = Queues([an_atom(1)], [an_atom(2)])
    step = Step()
    world = World(queues, step)
    world.now += 59.999
    queues.when_taken = lambda: None
    world.instance.run()
    assert step.worked == [[1], [2]]

    queues.batches = [[an_atom(3)]]
    world.now += 0.001
    world.instance.run()

    assert step.worked == [[1], [2]]


def test_what_it_holds_when_its_life_ends_it_gives_back() -> None:
    queues = Queues([an_atom(1), an_atom(2)])
    step = Step()
    world = World(queues, step)

    def take_long() -> None:
        world.now += 60

    queues.when_taken = take_long
    world.instance.run()

    assert step.worked == []
    assert queues.did == [("give back", {1: 1_060_000, 2: 1_060_000}, False)]


def test_what_is_taken_is_hidden_for_longer_than_one_lives() -> None:
    queues = Queues()
    World(queues, Step()).instance.run()

    ((_, _, hidden_ms),) = queues.said
    assert hidden_ms == LIMITS.visibility_ms > LIMITS.lifetime_ms


def test_an_instance_whose_turn_is_over_finishes_what_it_has_in_hand() -> None:
    queues = Queues([an_atom(1)], [an_atom(2)])
    step = Step()
    world = World(queues, step)

    def end() -> None:
        world.instance.ends = True

    queues.when_taken = end
    world.instance.run()

    assert step.worked == [[1]]
    assert queues.did[0][:2] == ("finish", [1])


def test_it_stores_again_while_the_store_is_away() -> None:
    queues = Queues([an_atom(1)])
    queues.away = 3
    World(queues, Step()).instance.run()

    assert [each[:2] for each in queues.did] == [("finish", [1])]


def test_it_gives_up_where_the_store_is_away_for_longer_than_it_lives() -> None:
    queues = Queues([an_atom(1)])
    queues.away = 1_000
    with pytest.raises(Unavailable):
        World(queues, Step()).instance.run()

    assert queues.did == []


def test_results_are_collected() -> None:
    queues = Queues([an_atom(1)])
    World(queues, Step(Result({1: ()}, collected=True))).instance.run()

    assert queues.did == [("collect", [1])]


class Faulty(Step):
    """Fails by a fault of ours where one of these is among the atoms."""

    def __init__(self, error: Exception, *bad: int) -> None:
        super().__init__()
        self.error = error
        self.bad = set(bad)

    def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
        if self.bad & {each.id for each in atoms}:
            raise self.error
        return super().work(task, atoms)


@pytest.mark.parametrize("attempts", [1, 5])
def test_a_fault_of_ours_is_an_attempt_at_the_atom_that_it_is_about(attempts: int) -> None:
    """Those that were taken with it are done; it is a dead letter in the end, with a reason."""
    queues = Queues([an_atom(1), an_atom(2, attempts), an_atom(3)])
    World(queues, Faulty(TypeError("secret"), 2)).instance.run()

    finished, failed, last = queues.did
    assert (finished[:2], last[:2]) == (("finish", [1]), ("finish", [3]))
    if attempts == 1:
        assert failed == ("give back", {2: 1_000_000 + pause_ms(1)}, True)
    else:
        assert failed == ("bury", {2: "the platform failed on it: TypeError"})


def test_a_store_that_is_away_is_no_attempt() -> None:
    queues = Queues([an_atom(1)])
    with pytest.raises(Unavailable):
        World(queues, Faulty(Unavailable("away"), 1)).instance.run()

    assert queues.did == []


def test_a_look_is_never_dead() -> None:
    """After it nobody would look any more; what is to be cut may be."""
    for step, expected in ((LOOK, "give back"), (CUT, "bury")):
        queues = Queues([an_atom(1, 100)])
        World(queues, Faulty(TypeError(), 1), queue=a_queue(step=step)).instance.run()

        assert [each[0] for each in queues.did] == [expected]


def test_what_was_shown_too_often_and_never_told_of_is_dead() -> None:
    """It kills the process that works on it: no attempt at it ends. To the last time."""
    tries = a_workflow().attempts_of(0)
    shown = tries + instances.KILLED
    queues = Queues([an_atom(1, shown), an_atom(2, shown + 1), an_atom(3)], [an_atom(4, 99)])
    step = Step()
    world = World(queues, step)
    world.instance.run()

    assert step.worked == [[1, 3]]
    assert queues.did[0] == ("bury", {2: instances.NOBODY_TOLD})
    assert queues.did[-1] == ("bury", {4: instances.NOBODY_TOLD})
    assert Done(0, 0, 1, 1, 0) in world.noted


def test_a_look_that_was_shown_often_is_looked_for_again() -> None:
    queues = Queues([an_atom(1, 1_000)])
    step = Step()
    World(queues, step, queue=a_queue(step=LOOK)).instance.run()

    assert step.worked == [[1]]
