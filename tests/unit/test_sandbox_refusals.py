"""Which programs of a call do not run: one tenant's faults are not another's."""

from __future__ import annotations

from sandbox_trees import a_call, a_formula, an_event

from sandbox.host.breaker import Breaker
from sandbox.host.refusals import Refusals
from sandbox.host.usage import Usage
from sandbox.host.worker_client import Failure


def test_what_one_tenants_worker_cannot_make_ready_another_may_run() -> None:
    """Equal code is one program, but a worker may have been taken over, or be out of memory."""
    refusals = Refusals(None, Breaker(), Usage())
    program = a_formula("$0")
    call = a_call(program, an_event())

    refusals.blame_unready("a", [call], program.id, Failure("crash", "it ended"))

    assert refusals.applied("a", call).refused == {1: ("crash", "it ended")}
    assert refusals.applied("b", call).refused == {}
