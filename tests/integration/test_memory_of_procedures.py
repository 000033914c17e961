"""What a procedure may have of memory, in the sandbox that runs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import pytest
from sandbox_pools import a_pool
from workflow_builders import LIMITS, a_queue, a_workflow, an_atom

from functions.instance import Done, Instance
from functions.scripts import Scripts
from functions.steps import Result, Task
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.ports.atoms import Atom, Product, Queue

CODE = """function(atom) {
    const kept = [];
    for (let n = 0; n < atom.millions * 10; n++) kept.push(new Array(100000).fill(n + 0.5));
    return {kept: kept.length};
}"""
"""Eight bytes of each number."""
FEW, MANY = b'{"millions":0.1}', b'{"millions":6}'


class Queues:
    """Two atoms wait; what became of them is noted."""

    def __init__(self, attempts: int) -> None:
        self.waiting = [an_atom(1, attempts, FEW), an_atom(2, attempts, MANY)]
        self.made: list[bytes] = []
        self.again: list[tuple[int, bool]] = []
        self.dead: dict[int, str] = {}

    def take(self, *_: object) -> list[Atom]:
        taken, self.waiting = self.waiting[:1], self.waiting[1:]
        return taken

    def finish(
        self, _queue: Queue, _instance: int, ids: Sequence[int], made: Sequence[Product], _now: int
    ) -> int:
        self.made += [each.body for each in made]
        return len(ids)

    def give_back(
        self, _queue: Queue, _instance: int, at_ms: Mapping[int, int], *, counts: bool
    ) -> None:
        self.again += [(each, counts) for each in at_ms]

    def bury(
        self, _queue: Queue, _instance: int, reasons: Mapping[int, str], _now_ms: int
    ) -> None:
        self.dead |= reasons


@pytest.fixture
def scripts() -> Iterator[Scripts]:
    with ExitStack() as ends:

        def evaluator(memory_mib: int) -> JavaScript:
            pool = a_pool(heap_mib=memory_mib, budget_ms=20_000)
            ends.callback(pool.close)
            return JavaScript(pool)

        yield Scripts(evaluator)


def task(memory: int) -> Task:
    procedures = {"p": {"code": CODE, "memory": memory, "attempts": 3}}
    return Task(a_queue(), a_workflow("p", procedures=procedures), "1.0")


def worked(scripts: Scripts, memory: int) -> Result:
    return scripts.work(task(memory), [an_atom(1, body=FEW), an_atom(2, body=MANY)])


def test_memory_is_what_its_document_says(scripts: Scripts) -> None:
    """48 MB do not go into 32 MiB, and go into 128; an atom that is small goes into both."""
    small, large = worked(scripts, 32), worked(scripts, 128)

    assert [*small.done] == [1]
    assert small.failed[2].reason.startswith("oom: ")
    assert [*large.done] == [1, 2]


@pytest.mark.parametrize(("attempts", "is_dead"), [(2, False), (3, True)])
def test_who_takes_more_memory_than_there_is_has_had_an_attempt(
    scripts: Scripts, attempts: int, is_dead: bool
) -> None:
    """Its process is ended: another atom's work is not, and the last attempt says why."""
    queues, noted = Queues(attempts), list[Done]()
    own = task(32)
    instance = Instance(
        1,
        own,
        scripts,
        queues,
        LIMITS,
        lambda _task, done: noted.append(done),  # type: ignore[arg-type]
    )
    instance.run()

    assert queues.made == [b'{"kept":1}']
    assert queues.again == ([] if is_dead else [(2, True)])
    assert [reason.partition(":")[0] for reason in queues.dead.values()] == ["oom"] * is_dead
    assert (sum(each.failed for each in noted), sum(each.dead for each in noted)) == (1, is_dead)
