"""How far one update may go, and how much one transaction may hold.

What a tenant's streams make of one update is bounded tenant by tenant, so that nobody's
composites can end another's. What lies beyond a bound ends with a verdict.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

MAX_BATCH_COMPUTATIONS = 50_000
"""Of one transaction that has several trees. One tree may have more."""

MAX_BATCH_BYTES = 16 * 1024 * 1024
"""Documents of one transaction that has several trees."""

MAX_TREE_BYTES = 64 * 1024 * 1024
"""Documents of one tree, of all tenants: beyond it those end whose update it is not."""

BATCH_SECONDS = 0.5
"""A batch that takes longer is given up and cut: somebody may wait behind it."""

SLICE_SECONDS = 0.2
"""What batches are cut to beforehand, by what updates took so far."""

CONTESTED_SECONDS = 0.05
"""The same while several tenants are active: after each of them it is seen who is over a share."""

BACKLOG = 200
"""So many records at once have not just come: there are more than can be served quickly."""

LOADING_SECONDS = 0.2
"""Loading components may take so long between two batches."""

CONTESTED_LOADING_SECONDS = 0.02
"""The same while several tenants are active and there is no backlog: who has nothing to do with it
waits meanwhile."""


class Limits(NamedTuple):
    """How far one update may go.

    `hops` counts composites on a path. The others hold for each tenant's part of an
    execution tree: `computations` and `tree_bytes` (of its outputs, in UTF-8) for the tenant
    whose update it is, a fraction of it for tenants that subscribe to it from outside;
    `tree_seconds` of waiting for scripts, likewise.
    """

    hops: int
    computations: int
    tree_bytes: int = sys.maxsize
    tree_seconds: float = float("inf")
    foreign: float = 1.0
    """Which part of all these a tenant has in the tree of another tenant's update."""


NO_LIMITS = Limits(sys.maxsize, sys.maxsize)
