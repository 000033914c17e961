"""Processor time, by tenant and by program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cachetools import LRUCache

from sandbox.host.by_tenant import ByTenant
from sandbox.host.grown import Part
from sandbox.trees import Call

MAX_PROGRAMS = 100_000
MAX_TENANTS = 10_000
STEP_WEIGHT = 0.002
"""What a step counts beside the milliseconds seen by the runner: most steps see none."""


class ProcessorSeconds(NamedTuple):
    """What the processor did for a tenant."""

    programs: float = 0.0
    """Running them."""
    starts: float = 0.0
    """Of processes."""
    preparing: float = 0.0
    """Looking at programs, and making them ready in a process."""

    @property
    def total(self) -> float:
        """All of it."""
        return self.programs + self.starts + self.preparing

    def plus(self, other: ProcessorSeconds) -> ProcessorSeconds:
        """Return both together."""
        return ProcessorSeconds(*[a + b for a, b in zip(self, other, strict=True)])

    def since(self, before: ProcessorSeconds) -> ProcessorSeconds:
        """Return what has been added; nothing where it was forgotten in between."""
        return ProcessorSeconds(*[max(0.0, a - b) for a, b in zip(self, before, strict=True)])


class Usage:
    """Usage adds up, until a tenant has too many programs: then some of its begin anew."""

    def __init__(self) -> None:
        self.tenants: LRUCache[str, float] = LRUCache(MAX_TENANTS)
        self.growing: LRUCache[str, ProcessorSeconds] = LRUCache(MAX_TENANTS)
        self._programs: ByTenant[float] = ByTenant(MAX_PROGRAMS)

    @property
    def programs(self) -> Mapping[str, float]:
        """The processor seconds by program."""
        return self._programs.all()

    def note_growing(self, tenant: str, used: ProcessorSeconds) -> None:
        """Note what was used for a tenant's trees."""
        self.growing[tenant] = self.growing.get(tenant, ProcessorSeconds()).plus(used)

    def charge(
        self, tenant: str, seconds: float, calls: Sequence[Call] = (), parts: Sequence[Part] = ()
    ) -> None:
        """Share the seconds of a frame among the programs of its calls.

        By the milliseconds that each took, as the runner saw the clock change, and by how
        often it was run.
        """
        self.tenants[tenant] = self.tenants.get(tenant, 0.0) + seconds
        weights: dict[str, float] = {}
        for call, part in zip(calls, parts, strict=bool(parts)):
            names = call.names
            for ended in part.ended:
                name = names[ended.node]
                weights[name] = weights.get(name, 0.0) + STEP_WEIGHT * ended.times
            for node, milliseconds in part.ticks.items():
                weights[names[node]] = weights.get(names[node], 0.0) + milliseconds
        if not parts and len(calls) == 1:  # it has no answer: each of its programs may be to blame
            weights = {name: STEP_WEIGHT for name in calls[0].names if name}
        whole = sum(weights.values())
        programs = self._programs
        for name, weight in weights.items():
            before = programs.of(tenant).get(name, 0.0)
            programs.put(tenant, name, before + seconds * weight / whole)
