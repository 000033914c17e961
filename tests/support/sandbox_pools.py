"""Pools of sandbox processes for tests, with the files that set-up has downloaded."""

from __future__ import annotations

from typing import Any

from sandbox_trees import a_call, a_formula, events, kinds, values

from sandbox import SandboxOptions, SandboxPool
from servioticy.embedded import javascript
from servioticy.settings import load

JAVASCRIPT = javascript.folder(load())
GOOD = a_call(a_formula("$0+1"), *events(3))
RIGHT = [[1], [2], [3]]


def a_pool(**options: Any) -> SandboxPool:
    """Code may take ten times as long as on the platform, where the test does not say how long."""
    options.setdefault("budget_ms", 10 * SandboxOptions().budget_ms)
    return SandboxPool(JAVASCRIPT, SandboxOptions(**options))


def is_right(pool: SandboxPool, tenant: str = "tenant") -> bool:
    """Whether an innocent call gives what it should, all at once."""
    (grown,) = pool.grow(tenant, [GOOD])
    return values(grown) == RIGHT and kinds(grown) == {"emitted": 3}
