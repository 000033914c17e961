"""A pool tells how much it has run and ended, without waiting for what runs."""

from __future__ import annotations

import threading

import pytest
from sandbox_pools import a_pool
from sandbox_trees import a_call, a_formula, an_event

pytestmark = pytest.mark.real
SECONDS = 60.0


def test_frames_and_kills_are_counted() -> None:
    pool = a_pool(allow_list=False, budget_ms=500)
    try:
        pool.grow("tenant", [a_call(a_formula("$0+1"), an_event())])
        assert (pool.frames, pool.kills, pool.workers) == (1, {}, 1)
        bad = a_call(a_formula("(function(){for(;;);})()"), an_event())
        running = threading.Thread(target=pool.grow, args=("tenant", [bad]))
        running.start()
        while pool.frames == 1 and running.is_alive():
            pass  # asked while something runs
        running.join(SECONDS)

        assert pool.frames > 1
        assert set(pool.kills) == {"timeout"}
        pool.close()
        assert pool.workers == 0
    finally:
        pool.close()
