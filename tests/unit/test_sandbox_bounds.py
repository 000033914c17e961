"""What the pool keeps about tenants, and that there is an end of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sandbox_trees import a_call, an_event

from sandbox import ChannelCode, Fault, Program
from sandbox.host import approval, breaker, usage
from sandbox.host.approval import Approval
from sandbox.host.breaker import Breaker
from sandbox.host.grown import Part
from sandbox.host.refusals import Refusals
from sandbox.host.usage import STEP_WEIGHT, Usage
from sandbox.host.worker_client import Failure
from sandbox.trees import Call, Ended


def a_program(name: str) -> Program:
    return Program(name, "expression", (), (ChannelCode("t", "1", "number"),))


def test_usage_forgets_tenants(monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform may see any number of them."""
    monkeypatch.setattr(usage, "MAX_TENANTS", 2)
    counted = Usage()
    for tenant in ("a", "b", "a", "c"):
        counted.charge(tenant, 1.0)

    assert dict(counted.tenants) == {"a": 2.0, "c": 1.0}


def test_usage_is_shared_by_milliseconds_and_by_steps() -> None:
    """Most steps see no clock move; programs are known by the names of their streams."""
    counted = Usage()
    call = a_call(a_program("p"), an_event())
    composite = len(call.wiring.nodes) - 1
    ended = [Ended(composite, "filtered", 3, 0, 0)]
    slow = Part([[]], ended, {composite: 2}, -1)

    counted.charge("t", 1.0, [call, renamed(call, "q")], [Part([[]], ended, {}, -1), slow])

    steps = 3 * STEP_WEIGHT
    share = steps / (2 * steps + 2)
    assert counted.programs == pytest.approx({"p": share, "q": 1 - share})


def renamed(call: Call, name: str) -> Call:
    return Call(call.wiring, [name] * len(call.names), call.lasts, call.trees, call.bounds)


def test_without_an_answer_the_seconds_go_to_all_that_may_have_run() -> None:
    """Nothing is known but what was asked for; of several calls not even that."""
    counted = Usage()
    counted.charge("t", 1.0, [a_call(a_program("p"), an_event())])
    counted.charge("t", 1.0, [a_call(a_program(each), an_event()) for each in "pq"])

    assert counted.programs == {"p": 1.0}
    assert dict(counted.tenants) == {"t": 2.0}


def test_an_answer_without_any_steps_is_charged_to_its_tenant() -> None:
    """A taken-over worker may say that nothing ran."""
    counted = Usage()
    counted.charge("t", 1.0, [a_call(a_program("p"))], [Part([], [], {}, -1)])

    assert counted.programs == {}
    assert dict(counted.tenants) == {"t": 1.0}


def test_the_breaker_forgets_tenants(monkeypatch: pytest.MonkeyPatch) -> None:
    """By number, and those that have been quiet for the whole window."""
    monkeypatch.setattr(breaker, "MAX_TENANTS", 2)
    now = 0.0
    fuse = Breaker(lambda: now)
    for tenant in ("a", "b", "a", "c"):
        fuse.killed(tenant, tenant + "'s", "timeout")
    assert set(fuse._tenants) == {"a", "c"}

    now = breaker.WINDOW_SECONDS
    assert list(fuse._tenants) == []


def test_kills_are_counted_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than enough to suspend."""
    monkeypatch.setattr(breaker, "MAX_KILLS", 5)
    fuse = Breaker(lambda: 0.0)
    for _ in range(6):
        fuse.killed("tenant", "program", "timeout")

    found = fuse.suspension("program")
    assert found
    assert found.kills == 5


class Checker(Approval):
    """Answers without a process, and counts."""

    def __init__(self, answer: Any, clock: Any = None) -> None:
        zygote: Any = None
        super().__init__(zygote, 60, clock or (lambda: 0.0))
        self.answer = answer
        self.asked = 0

    def ask(self, texts: Sequence[bytes], allowance: Any) -> Any:
        self.asked += 1
        return self.answer or [[] for _ in texts]


def test_of_whom_most_is_approved_some_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """And asked again: whatever one tenant thinks of, the others' programs stay known."""
    monkeypatch.setattr(approval, "MAX_REMEMBERED", 4)
    checker = Checker(None)
    checker.learn("a", [a_program("mine")])
    for number in range(20):
        checker.learn("b", [a_program(str(number))])

    assert checker.knows("a", a_program("mine"))
    assert checker.knows("b", a_program("19"))
    assert not checker.knows("b", a_program("0"))
    assert len(checker._known.all()) <= 4


def test_one_tenants_programs_do_not_end_the_accounts_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(usage, "MAX_PROGRAMS", 4)
    counted = Usage()
    counted.charge("a", 1.0, [a_call(a_program("mine"), an_event())])
    for number in range(20):
        counted.charge("b", 1.0, [a_call(a_program(str(number)), an_event())])

    assert counted.programs["mine"] == 1.0
    assert counted.programs["19"] == 1.0
    assert len(counted.programs) <= 4


def test_what_cannot_be_checked_is_not_asked_at_every_update() -> None:
    """Each time would cost the partition the whole wait; after a minute it is tried again."""
    now = 0.0
    checker = Checker(Failure("timeout", ""), lambda: now)
    for _ in range(3):
        checker.learn("t", [a_program("a")])
    assert checker.asked == 3  # in company, alone, and once more
    assert checker.fault("t", a_program("a")) == Fault(
        "policy", "the program cannot be checked now"
    )

    now = approval.RETRY_SECONDS
    checker.learn("t", [a_program("a")])

    assert checker.asked == 6


def test_what_was_starved_is_asked_again() -> None:
    """It is the machine that had no time."""
    checker = Checker(Failure("timeout", "", starved=True))
    checker.learn("t", [a_program("a")])
    checker.answer = None
    checker.learn("t", [a_program("a")])

    assert checker.fault("t", a_program("a")) is None


def test_only_a_program_that_ran_has_proven_itself() -> None:
    """One whose input is missing, or that is no JavaScript, has not shown that it does no harm."""
    fuse = Breaker(lambda: 0.0)
    refusals = Refusals(None, fuse, Usage())
    for _ in range(breaker.TENANT_KILLS + 1):
        fuse.killed("tenant", "another", "timeout")

    for kind, allowed in (
        *((each, False) for each in ("missing", "syntax", "stale", "policy", "superseded")),
        *((each, True) for each in ("emitted", "filtered", "script-error", "error")),
    ):
        call = a_call(a_program(kind))
        composite = len(call.wiring.nodes) - 1
        part = Part([], [Ended(composite, kind, 1, 0, 0)], {}, -1)
        refusals.note_survivors([call], [part])

        name = call.names[composite]
        fuse.killed("tenant", name, "timeout")
        assert (fuse.suspension(name) is None) == allowed


def test_a_program_that_cannot_be_made_ready_is_refused_wherever_it_is() -> None:
    """By its content: the streams of other devices have it too."""
    refusals = Refusals(None, Breaker(lambda: 0.0), Usage())
    call = a_call(a_program("p"))
    composite = len(call.wiring.nodes) - 1
    refusals.blame_unready("tenant", [call], "p", Failure("timeout", "too long"))

    for each in (call, a_call(a_program("p"), own=0), renamed(call, "another")):
        assert refusals.applied("tenant", each).refused == {composite: ("timeout", "too long")}
    assert refusals.applied("tenant", a_call(a_program("q"))).refused == {}


def test_what_the_caller_refuses_stays_refused() -> None:
    """Its limits come with the call."""
    call = a_call(a_program("p"))
    refused = Call(call.wiring, call.names, (), (), call.bounds, {0: ("size-limit", "")})

    assert Refusals(None, Breaker(), Usage()).applied("tenant", refused) == refused
