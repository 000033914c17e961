"""Programs that attack, and innocent ones beside them."""

from __future__ import annotations

from sandbox_trees import a_call, a_formula, a_function, events, grow_all, values

from sandbox import Program, SandboxPool
from sandbox.trees import Node, Wake, Wiring

HANG = "while(true){}"
GOOD = a_formula("$0+1")
CALL = a_call(GOOD, *events(3))
RIGHT = [[1], [2], [3]]


def is_right(pool: SandboxPool, tenant: str = "tenant") -> bool:
    """Whether an innocent call gives what it should."""
    return values(grow_all(pool, CALL, tenant)) == RIGHT


def a_program(attack: str) -> Program:
    """Attacks at the second of three updates, which are of 1, 2 and 3."""
    return a_function(f"if (A.lastUpdate === 2) {{ {attack} }} return 7")


def between(attacker: Program) -> Wiring:
    """Innocent composites before it and after it, of the same input; one more reads its output."""
    wakes = (Wake(0, 1, 0), Wake(1, 2, 0), Wake(2, 3, 0))
    nodes = (
        Node(wakes),
        Node((), GOOD, ((0,),)),
        Node((Wake(0, 4, 0),), attacker, ((0,),)),
        Node((), GOOD, ((0,),)),
        Node((), GOOD, ((2,),)),
    )
    return Wiring(f"between {attacker.id}", nodes)


def processes(pool: SandboxPool) -> int:
    """How many were ended for what ran in them."""
    return sum(pool.kills.values())
