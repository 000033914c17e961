"""All attacks, in their order."""

from __future__ import annotations

from benchmarks.attacks import brokering, crowding, leaving, stopping, taking

ATTACKS = {
    each.id: each
    for each in (
        *stopping.ATTACKS,
        *taking.ATTACKS,
        *crowding.ATTACKS,
        *brokering.ATTACKS,
        *leaving.ATTACKS,
    )
}
