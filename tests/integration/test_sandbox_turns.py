"""A tenant's calls take turns, and nobody else waits for them; what they cost is told."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from sandbox_pools import GOOD, a_pool, is_right
from waiting import until

from sandbox import ProcessorSeconds, SandboxPool, TookTooLong
from sandbox.host.allowance import Allowance
from sandbox.trees import Call


def test_tenants_do_not_wait_for_each_other() -> None:
    """The process of one that computes is not ended to make room for another; its own calls wait
    for it."""
    pool = a_pool(budget_ms=60_000, max_workers=1)
    assert is_right(pool, "a")
    pid = pool._workers["a"].pid
    os.kill(pid, signal.SIGSTOP)
    before = pool.frames
    with ThreadPoolExecutor(2) as elsewhere:
        first = elsewhere.submit(is_right, pool, "a")
        try:
            until(lambda: pool.frames > before)
            second = elsewhere.submit(is_right, pool, "a")
            assert is_right(pool, "b")
            assert not first.done()
            assert not second.done()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert first.result()
        assert second.result()
    assert pool._workers["a"].pid == pid
    pool.close()


def test_programs_cost_a_tenant_less_than_its_processes(pool: SandboxPool) -> None:
    """Whoever is charged for the start of one is no slow one for that."""
    assert pool.growing_seconds_of("tenant").programs == 0
    assert is_right(pool)
    used = pool.growing_seconds_of("tenant")
    assert 0 < used.programs < pool.cpu_seconds_of("tenant")
    assert used.starts > 0
    pool.close()
    assert pool.growing_seconds_of("tenant") == used


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
