"""Processor time, by tenant and by program."""

from __future__ import annotations

from collections.abc import Sequence

from cachetools import LRUCache

from sandbox.program import Call

MAX_PROGRAMS = 10_000
MAX_TENANTS = 10_000
STEP_WEIGHT = 0.002
"""What a step counts beside the milliseconds seen by the runner: most steps see none."""


class Usage:
    """Usage adds up; the programs and tenants that were not used for longest are forgotten."""

    def __init__(self) -> None:
        self.tenants: LRUCache[str, float] = LRUCache(MAX_TENANTS)
        self.programs: LRUCache[str, float] = LRUCache(MAX_PROGRAMS)

    def charge(
        self, tenant: str, seconds: float, calls: Sequence[Call] = (), ticks: Sequence[int] = ()
    ) -> None:
        """Share the seconds of a frame among its calls.

        `ticks` are the milliseconds that each took, as the runner saw the clock change;
        a lone call is charged exactly.
        """
        self.tenants[tenant] = self.tenants.get(tenant, 0.0) + seconds
        steps = [STEP_WEIGHT * len(call.steps) for call in calls]
        weights = [a + b for a, b in zip(steps, ticks, strict=True)] if ticks else steps
        whole = sum(weights)
        for call, weight in zip(calls, weights, strict=True):
            name = call.program.id
            self.programs[name] = self.programs.get(name, 0.0) + seconds * weight / whole
