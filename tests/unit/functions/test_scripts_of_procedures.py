"""Code of procedures: what came of each atom, and that nobody is suspended for another's code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from workflow_builders import CODE, a_queue, a_workflow, an_atom

from functions import scripts
from functions.scripts import AT_ONCE, SUSPENDED_MS, Scripts
from functions.steps import LATER_MS, Failure, Result, Task
from sandbox import InfraError, ProcessorSeconds
from sandbox.host.breaker import KILLS, Breaker
from sandbox.host.frames import is_step, woken
from sandbox.host.refusals import Refusals
from sandbox.host.usage import Usage
from sandbox.host.worker_client import Failure as Ending
from sandbox.trees import ROOT, Call, Ended, Grown, Made
from servioticy.ports.atoms import Queue

MADE = b'{"channels":{"procedure":{"current-value":{"n":2}}},"lastUpdate":1}'


def done(_call: Call) -> Grown:
    return Grown([[Made(0, 0, 0, 1, MADE)]], [])


def ended(kind: str) -> Callable[[Call], Grown]:
    return lambda _call: Grown([[]], [Ended(0, kind, 1, 0, 0, "why")])


class Evaluator:
    """Answers each call in its turn; the last answer is everybody's."""

    def __init__(self, *answers: Callable[[Call], Grown]) -> None:
        self.answers = list(answers)
        self.asked: list[list[Call]] = []

    def evaluate(
        self, tenant: str, calls: Sequence[Call], within: float | None = None
    ) -> list[Grown]:
        self.asked.append(list(calls))
        return [
            (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])(each)
            for each in calls
        ]

    def processor_seconds(self, tenant: str) -> ProcessorSeconds:
        return ProcessorSeconds()


def worked(evaluator: Evaluator, count: int = 1, queue: Queue = a_queue()) -> Result:  # noqa: B008
    task = Task(queue, a_workflow("clean"), "1.0")
    found = Scripts(lambda _memory_mib: evaluator).work(task, [an_atom(n) for n in range(count)])
    return found._replace(mebibyte_ms=0)


def test_what_is_made_is_told_of_each_atom_and_so_is_what_failed() -> None:
    evaluator = Evaluator(done, ended("filtered"), ended("script-error"), ended("syntax"))

    assert worked(evaluator, 4) == Result(
        {0: [b'{"n":2}'], 1: ()},
        {2: Failure("script-error: why"), 3: Failure("syntax: why", True)},
    )


def test_what_is_suspended_has_had_no_attempt_and_waits_as_long() -> None:
    """Else atoms that nobody has tried would be dead letters long before they may be."""
    evaluator = Evaluator(done, ended("timeout"), ended("suspended"))

    assert worked(evaluator, 4) == Result(
        {0: [b'{"n":2}']},
        {1: Failure("timeout: why")},
        {2: SUSPENDED_MS, 3: SUSPENDED_MS},
    )


def test_where_the_sandbox_is_away_nobody_is_to_blame() -> None:
    def away(_call: Call) -> Grown:
        raise InfraError("away")

    assert worked(Evaluator(away), 2) == Result(later={0: LATER_MS, 1: LATER_MS})


def test_atoms_that_take_long_are_given_back_before_others_see_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """But for those of the first frame, or nothing would ever come to its end."""
    monkeypatch.setattr(scripts, "WORKING_SECONDS", 0.0)
    evaluator = Evaluator(done)

    found = worked(evaluator, AT_ONCE + 1)

    assert [len(each) for each in evaluator.asked] == [AT_ONCE]
    assert (sorted(found.done), found.later) == ([*range(AT_ONCE)], {AT_ONCE: 0})


def test_who_is_quick_has_all_that_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "WORKING_SECONDS", float("inf"))
    evaluator = Evaluator(done)

    found = worked(evaluator, 2 * AT_ONCE + 1)

    assert [len(each) for each in evaluator.asked] == [AT_ONCE, AT_ONCE, 1]
    assert len(found.done) == 2 * AT_ONCE + 1


@pytest.mark.parametrize(
    "other",
    [a_queue(2, "other"), a_queue(workflow="other"), a_queue(version=2)],
    ids=["of another tenant", "of another workflow", "of another version"],
)
def test_nobody_is_suspended_for_anothers_code(other: Queue) -> None:
    """As the sandbox looks at them: a call that ends processes is one step, and blamed by name."""
    refusals, evaluator = Refusals(None, Breaker(), Usage()), Evaluator(done)
    worked(evaluator)
    worked(evaluator, queue=other)
    ((bad,), (good,)) = evaluator.asked
    assert is_step(bad)
    for _ in range(KILLS):
        refusals.blame("1.0", bad.names[woken(bad)], Ending("timeout", "no answer"))

    assert [kind for kind, _ in refusals.applied("1.0", bad).refused.values()] == ["suspended"]
    assert refusals.applied("1.0", good).refused == {}
    assert refusals.applied("2.0", good).refused == {}


def test_nor_is_another_procedure_of_the_workflow() -> None:
    evaluator = Evaluator(done)
    workflow = a_workflow("clean", "sort")
    for step in (0, 1):
        task = Task(a_queue(step=step), workflow, "1.0")
        Scripts(lambda _memory_mib: evaluator).work(task, [an_atom(1)])

    assert len({each.names[0] for (each,) in evaluator.asked}) == 2
    assert {each.code for each in workflow.procedures} == {CODE}
    assert {each.trees[0][0].path for (each,) in evaluator.asked} == {ROOT}
