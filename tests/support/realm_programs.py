"""Programs that look around in the realm, and what comes of them."""

from __future__ import annotations

from sandbox_trees import grow_all, value_of

from sandbox import ChannelCode, Program, SandboxPool
from sandbox.trees import Call, Node, Wake, Wiring

UPDATE = b'{"channels":{"t":{"current-value":4}},"lastUpdate":1}'


def a_program(body: str, type_: str = "string", inputs: str = "A") -> Program:
    code = f"function({','.join(inputs)}){{{body}}}"
    name = f"{type_} {code}"
    return Program(name, "function", tuple(inputs), (ChannelCode("t", code, type_),))


def a_region(*bodies: str) -> Wiring:
    """Composites of one input, in this order; the last one also of another, node 0 being first."""
    programs = [a_program(each) for each in bodies]
    last = len(programs) + 1
    wakes = tuple(Wake(number, number + 1, 0) for number in range(len(programs)))
    nodes = [Node(code=each, inputs=((0, last),)) for each in programs]
    name = repr([each.id for each in programs])
    return Wiring(name, (Node(wakes), *nodes, Node((Wake(0, last - 1, 0),))))


def told(pool: SandboxPool, call: Call, tenant: str = "tenant") -> list[list[str]]:
    """What the composites of each tree said."""
    return [[value_of(each) for each in tree] for tree in grow_all(pool, call, tenant).made]
