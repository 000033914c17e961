"""Programs that list what they read, and trees grown of them."""

from __future__ import annotations

from typing import Any

from sandbox_trees import an_update

from sandbox import ChannelCode, Program, SandboxPool
from sandbox.trees import Call, Event, Grown


def listing(inputs: int) -> Program:
    """Tells the values of its inputs, a dash for those that have none."""
    names = tuple(f"a{number}" for number in range(inputs))
    code = (
        f"function({','.join(names)}) {{ return [{','.join(names)}]"
        ".map(each => each === null ? '-' : each.channels.t['current-value']).join(' ') }"
    )
    return Program(f"lists {inputs}", "function", names, (ChannelCode("t", code, "string"),))


ONE, TWO = listing(1), listing(2)


def grown(pool: SandboxPool, call: Call) -> Grown:
    (grown,) = pool.grow("tenant", [call])
    assert not grown.failed
    return grown


def placed(node: int, value: Any, path: tuple[int, ...], at: int = 5) -> Event:
    return Event(node, at, an_update(value, at), path)
