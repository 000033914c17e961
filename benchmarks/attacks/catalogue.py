"""All attacks, in their order."""

from __future__ import annotations

from benchmarks.attacks import (
    brokering,
    crowding,
    evaluating,
    leaving,
    parsing,
    resting,
    stopping,
    taking,
)

_GROUPS = (resting, stopping, taking, crowding, brokering, leaving, evaluating, parsing)
ATTACKS = {each.id: each for group in _GROUPS for each in group.ATTACKS}
