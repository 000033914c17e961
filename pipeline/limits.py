"""How far one update may go, and how much one transaction may hold.

What a tenant's streams make of one update is bounded. What lies beyond a bound ends with a
verdict.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

MAX_BATCH_COMPUTATIONS = 50_000
"""Of one transaction that has several trees. One tree may have more."""

MAX_BATCH_BYTES = 16 * 1024 * 1024
"""Documents of one transaction that has several trees."""

MAX_WAITING = 10_000
"""Records of one tenant that wait: what comes over borders beyond that is not computed. Its own
updates are bounded by its quota."""

BATCH_SECONDS = 0.5
"""A batch that takes longer is given up and cut: somebody may wait behind it."""

SLICE_SECONDS = 0.2
"""What batches are cut to beforehand, by what updates took so far."""

BACKLOG = 200
"""So many records at once have not just come: there are more than can be served quickly."""

LOADING_SECONDS = 0.2
"""Loading components may take so long between two batches."""

DOCUMENTS_BYTES = 1024 * 1024
"""Of documents that are understood for definitions which take effect together."""

CONTESTED_DOCUMENTS_BYTES = 64 * 1024
"""The same while several tenants are active: some ten milliseconds."""

IDLE_SECONDS = 600.0
"""What is remembered of Service Objects that nobody has used for so long is forgotten, and read
again when it is needed: 10 to 30 kB of each, and some ten milliseconds."""


class Limits(NamedTuple):
    """How far one update may go.

    `hops` counts composites and borders on a path, over all tenants. The others hold for an
    execution tree, which is of one tenant: `computations`, `tree_bytes` (of its outputs, in
    UTF-8), and `tree_seconds` of waiting for scripts.
    """

    hops: int
    computations: int
    tree_bytes: int = sys.maxsize
    tree_seconds: float = float("inf")


NO_LIMITS = Limits(sys.maxsize, sys.maxsize)
