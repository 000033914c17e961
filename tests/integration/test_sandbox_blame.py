"""Whom hanging programs cost something: themselves, and their tenant its share of the time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from hostile_programs import CALL, HANG, RIGHT
from sandbox_trees import a_call, a_function, an_event, kinds, once, result, values

from pipeline.sharing.shares import BURST_SECONDS, Shares
from sandbox import ProcessorSeconds, SandboxPool
from sandbox.host.apart import FAILURES
from sandbox.host.breaker import KILLS, TENANT_KILLS
from sandbox.host.frames import is_step
from sandbox.host.worker_client import Failure, WorkerClient
from sandbox.trees import Call
from servioticy.domain.evaluators.javascript import JavaScript

POOL_OPTIONS = {"allow_list": False, "budget_ms": 30}


never_starved = pytest.mark.usefixtures("_never_starved")


@pytest.fixture
def _never_starved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starved is not guilty, and a busy machine starves: here all time is processor time."""
    monkeypatch.setattr(WorkerClient, "_cpu", lambda _: time.monotonic())


def hangs(number: int) -> str:
    return f"var n = {number}; {HANG}"


@never_starved
def test_new_programs_of_a_tenant_run_whatever_its_others_have_done(pool: SandboxPool) -> None:
    """Thirteen time-outs suspended all of them, for minutes."""
    for number in range(TENANT_KILLS + KILLS):
        assert result(once(pool, a_call(a_function(hangs(number)), an_event()))) == "timeout"

    assert result(once(pool, a_call(a_function("return 7"), an_event()))) == 7
    late = a_function(hangs(-1))
    assert result(once(pool, a_call(late, an_event()))) == "timeout"
    assert result(once(pool, a_call(late, an_event()))) == "suspended", "at its first by then"


def test_ever_new_hanging_programs_take_their_tenants_share(pool: SandboxPool) -> None:
    """Each is new, so none is suspended before; what is ended is charged as what ran, and whoever
    is over its share has its updates put off. Time is what the processes took."""
    now, share = 0.0, 0.3
    shares = Shares(share, lambda: now)
    before, most, taken, number = ProcessorSeconds(), 0.0, 0.0, 0
    while now < 20:
        shares.saw([1, 2])
        if 1 not in shares.over():
            call = a_call(a_function(hangs(number)), an_event())
            number += 1
            assert kinds(JavaScript(pool).evaluate("1", [call])[0]) == {"timeout": 1}
            used = pool.growing_seconds_of("1")
            spent, before = used.since(before).total, used
            assert spent > POOL_OPTIONS["budget_ms"] / 2000, "what was ended is charged"
            shares.charge({1: spent})
            taken, most, now = taken + spent, max(most, spent), now + spent
        else:
            now += 0.1

    assert number > 3
    assert taken <= share * now + BURST_SECONDS + most


def test_what_only_fails_together_is_taken_apart_and_nothing_is_lost(
    pool: SandboxPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a long chain of slow steps: each has time enough alone, and all of them have not."""
    grow = WorkerClient.grow

    def too_slow_together(self: WorkerClient, calls: Sequence[Call], *rest: Any) -> Any:
        if is_step(calls[0]):
            return grow(self, calls, *rest)
        self.kill()
        return Failure("timeout", "it took too long")

    monkeypatch.setattr(WorkerClient, "grow", too_slow_together)
    ended = []
    for _ in range(FAILURES + 2):
        (grown,) = JavaScript(pool).evaluate("tenant", [CALL])
        assert values(grown) == RIGHT
        ended.append(pool.kills["timeout"])

    assert ended[-1] == ended[-2] >= FAILURES
    assert pool.suspended() == {}
