"""A pool tells how much it has run and ended, without waiting for what runs."""

from __future__ import annotations

import threading

import pytest
from sandbox_pools import a_pool

from sandbox import Binding, Call, ChannelCode, Computation, Program

pytestmark = pytest.mark.real
SECONDS = 20.0


def a_call(name: str, code: str) -> Call:
    binding = Binding("$0", 0, ("channels", "t", "current-value"))
    program = Program(
        name, "expression", ("a",), (ChannelCode("t", code, "number"),), bindings=(binding,)
    )
    text = b'{"channels":{"t":{"current-value":1}},"lastUpdate":1}'
    return Call(program, None, None, (text,), (Computation(0, 1, 1, (0,)),))


def test_frames_and_kills_are_counted() -> None:
    pool = a_pool(allow_list=False, budget_ms=500)
    try:
        pool.run("tenant", [a_call("good", "$0+1")])
        assert (pool.frames, pool.kills) == (1, {})
        running = threading.Thread(
            target=pool.run, args=("tenant", [a_call("bad", "(function(){for(;;);})()")])
        )
        running.start()
        while pool.frames == 1 and running.is_alive():
            pass  # asked while something runs
        running.join(SECONDS)

        assert pool.frames > 1
        assert set(pool.kills) == {"timeout"}
    finally:
        pool.close()
