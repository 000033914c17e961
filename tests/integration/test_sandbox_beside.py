"""A tenant's second process: for what is run beside, and the first one of whoever has none."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from sandbox_pools import GOOD, a_pool, is_right
from sandbox_trees import a_call, a_function, an_event, events
from waiting import until

from sandbox import ProcessorSeconds, SandboxPool, TookTooLong
from sandbox.host.allowance import Allowance
from sandbox.host.growing import OVERLONG_SECONDS
from sandbox.host.workers import ProcessKey
from sandbox.trees import Call

# The allow-list would refuse the loop, and QuickJS takes its time for it.
POOL_OPTIONS = {"allow_list": False, "budget_ms": 2000}


def processes(pool: SandboxPool) -> dict[ProcessKey, int]:
    return {each: worker.pid for each, worker in pool._workers.items()}


def test_tenants_do_not_wait_for_each_other() -> None:
    """Nor what is run beside for the rest of its tenant; and the process of one that computes is
    not ended to make room for another."""
    pool = a_pool(budget_ms=60_000, max_workers=1)
    assert is_right(pool, "a")
    pid = pool._workers[ProcessKey("a")].pid
    os.kill(pid, signal.SIGSTOP)
    before = pool.frames
    with ThreadPoolExecutor(1) as elsewhere:
        first = elsewhere.submit(is_right, pool, "a")
        try:
            until(lambda: pool.frames > before)
            assert is_right(pool, "b")
            assert is_right(pool, "a", beside=True)
            assert not first.done()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert first.result()
    assert pool._workers[ProcessKey("a")].pid == pid
    pool.close()


def test_who_is_met_beside_others_is_ready_from_then_on(pool: SandboxPool) -> None:
    """With the process that it has had; a tenant with a first one keeps both."""
    assert not pool.is_ready("tenant")
    assert is_right(pool, beside=True)
    assert pool.is_ready("tenant")
    assert not pool.is_ready("other")
    first = processes(pool)
    assert list(first) == [ProcessKey("tenant")]

    assert is_right(pool)
    assert is_right(pool, beside=True)
    both = processes(pool)
    assert both.keys() == {ProcessKey("tenant"), ProcessKey("tenant", beside=True)}
    assert both[ProcessKey("tenant")] == first[ProcessKey("tenant")]


def test_where_there_is_no_room_the_first_process_is_the_one_beside() -> None:
    """Else tenants that have one each would end each other's, turn by turn."""
    pool = a_pool(max_workers=2)
    assert is_right(pool, "a")
    assert is_right(pool, "b")
    before = processes(pool)

    for _ in range(2):
        assert is_right(pool, "a", beside=True)
        assert is_right(pool, "b", beside=True)
    assert processes(pool) == before, "and is the first one again, as it was quick"
    pool.close()


def test_who_has_waited_with_many_updates_is_ready_as_well(pool: SandboxPool) -> None:
    """What each of them takes counts, not what all take together."""
    loop = a_function("var t=0;for(var i=0;i<60000;i++)t+=i;return 1")
    pool.grow("tenant", [a_call(loop, *events(100))], beside=True)
    assert pool.growing_seconds_of("tenant", beside=True).programs > 0.01
    assert pool.is_ready("tenant")


def test_whose_programs_take_long_is_not_ready_for_that(pool: SandboxPool) -> None:
    """It goes on beside the others, in the process that it has there."""
    loop = a_function("var t=0;for(var i=0;i<3000000;i++)t+=i;return 1")
    for _ in range(2):
        pool.grow("tenant", [a_call(loop, an_event())], beside=True)
        assert not pool.is_ready("tenant")
    assert list(processes(pool)) == [ProcessKey("tenant", beside=True)]


def test_a_first_process_that_has_a_turn_is_not_replaced(pool: SandboxPool) -> None:
    with pool._exclusion, pool._exclusion.of(ProcessKey("tenant")), pool._exclusion.elsewhere():
        assert is_right(pool, beside=True)
    assert list(processes(pool)) == [ProcessKey("tenant", beside=True)]
    assert is_right(pool, beside=True)
    assert list(processes(pool)) == [ProcessKey("tenant")]


def test_who_has_lost_its_process_is_not_ready() -> None:
    pool = a_pool(max_workers=1)
    assert is_right(pool, "a")
    assert is_right(pool, "b")
    assert pool.is_ready("b")
    assert not pool.is_ready("a")
    pool.close()

    idle = a_pool(idle_seconds=0)
    assert is_right(idle, "a")
    assert not idle.is_ready("a")
    idle.close()


def test_programs_cost_a_tenant_less_than_its_processes(pool: SandboxPool) -> None:
    """Whoever is charged for the start of one is no slow one for that; nor is it for what its
    other process does meanwhile."""
    assert pool.growing_seconds_of("tenant").programs == 0
    assert is_right(pool)
    programs = pool.growing_seconds_of("tenant").programs
    assert 0 < programs < pool.cpu_seconds_of("tenant")

    loop = a_function("var t=0;for(var i=0;i<3000000;i++)t+=i;return 1")
    pool.grow("tenant", [a_call(loop, an_event())], beside=True)
    assert pool.growing_seconds_of("tenant", beside=True).programs > 0.01
    assert pool.growing_seconds_of("tenant").programs == programs
    pool.close()
    assert pool.growing_seconds_of("tenant").programs == programs


def test_preparation_counts_though_there_was_no_time_for_more(
    pool: SandboxPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever has ever new programs looked at would be taken for quick."""

    def learn(_tenant: str, _calls: Sequence[Call], allowance: Allowance) -> None:
        allowance.used = ProcessorSeconds(preparing=0.25)
        raise allowance.spent()

    monkeypatch.setattr(pool._shared.refusals, "learn", learn)
    with pytest.raises(TookTooLong):
        pool.grow("tenant", [GOOD], within=1.0)
    assert pool.growing_seconds_of("tenant").preparing == 0.25


def test_who_has_many_programs_is_ready_once_they_are(pool: SandboxPool) -> None:
    """To make them ready takes more than to run them: together that is less than a tree may."""
    many = [a_call(a_function(f"return {number}"), an_event()) for number in range(12)]
    pool.grow("tenant", many, beside=True)
    used = pool.growing_seconds_of("tenant", beside=True)
    assert used.preparing > used.programs
    assert pool.is_ready("tenant")

    pool.grow("tenant", many)
    assert pool.growing_seconds_of("tenant").preparing == 0, "it is the same process"


def test_one_tree_in_many_regions_is_one(pool: SandboxPool) -> None:
    loop = a_function("var t=0;for(var i=0;i<1000000;i++)t+=i;return 1")
    pool.grow("tenant", [a_call(loop, an_event())] * 10, beside=True)
    assert pool.growing_seconds_of("tenant", beside=True).programs > 0.02
    assert not pool.is_ready("tenant")


def test_a_frame_that_one_tree_holds_up_is_overlong(pool: SandboxPool) -> None:
    """Many quick ones are not."""
    quick = a_call(a_function("var t=0;for(var i=0;i<20000;i++)t+=i;return 1"), *events(400))
    while (used := pool.growing_seconds_of("tenant")).programs < 2 * OVERLONG_SECONDS:
        pool.grow("tenant", [quick])
    assert used.overlong == 0

    turns = 200_000
    while not pool.growing_seconds_of("tenant").overlong:
        turns *= 2
        slow = a_function(f"var t=0;for(var i=0;i<{turns};i++)t+=i;return 1")
        pool.grow("tenant", [a_call(slow, an_event())])
    found = pool.growing_seconds_of("tenant")
    assert OVERLONG_SECONDS <= found.overlong <= found.programs
