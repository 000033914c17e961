"""What a batch has cost, by tenant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from sandbox import ProcessorSeconds

A_BATCH = 20
"""What one batch costs by itself, in computations: that is of nobody's tree."""

BYTES_A_COMPUTATION = 1024
"""To store and emit so many is as much work as another computation."""

ELSEWHERE_SECONDS = 15e-6
"""About what as much as a computation takes of the processor in Postgres, the broker and delivery:
nobody can ask them (decision 0014)."""

NO_SIZES: Mapping[int, int] = MappingProxyType({})


class Trees(NamedTuple):
    """What the trees of one tenant took."""

    updates: int
    seconds: float = 0.0
    """Of all, by the clock on the wall."""
    processor: float = 0.0
    """For the computations in them, in seconds, without the starts of processes."""
    preparing: float = 0.0
    """To make programs ready for them, likewise."""
    ran: bool = False
    """Whether scripts have run."""
    overlong: bool = False
    """Whether one of them took too long by itself."""


@dataclass(slots=True)
class _Cost:
    """Of one tenant."""

    ran: bool = False
    waited: float = 0.0
    processor: float = 0.0
    starts: float = 0.0
    preparing: float = 0.0
    work: float = 0.0
    """Computations, and verdicts of what was not computed."""
    overlong: bool = False


class Costs:
    """The costs of one batch; what each user of them wants are sums of these."""

    def __init__(self, updates: Mapping[int, int], sizes: Mapping[int, int] = NO_SIZES) -> None:
        """`updates` and `sizes` have the number of updates and their bytes by tenant."""
        self._updates = updates
        self._own_work = {
            tenant: number + sizes.get(tenant, 0) / BYTES_A_COMPUTATION
            for tenant, number in updates.items()
        }
        self._costs: defaultdict[int, _Cost] = defaultdict(_Cost)
        self.processor = 0.0
        """Seconds for all computations so far, without what was there to be ready for them."""
        self.ours = 0.0
        """Those of them that were this thread's."""

    def ran(
        self, tenant: int, trees: int, waited: float, used: ProcessorSeconds, ours: float
    ) -> None:
        """Note that so many trees of a tenant were grown.

        It was waited so long for that; `ours` is what it took of the processor in this thread.
        """
        processor = used.programs + ours
        self.processor += processor
        self.ours += ours
        cost = self._costs[tenant]
        cost.ran |= trees > 0
        cost.waited += waited
        cost.overlong |= used.overlong > 0
        cost.processor += processor
        cost.starts += used.starts
        cost.preparing += used.preparing

    def count(self, tenant: int, computations: int, size: int = 0) -> None:
        """Note computations of a tenant, and the bytes of what they made."""
        self._costs[tenant].work += computations + size / BYTES_A_COMPUTATION

    def refuse(self, tenant: int, verdicts: int) -> None:
        """Note that composites of a tenant were not computed, and what is told of that."""
        self._costs[tenant].work += verdicts

    def seconds(self, wall: float) -> dict[int, float]:
        """The time of the whole batch by tenant, where it took so long by the clock.

        Of scripts what the processor did: nobody pays for waiting until it was free, or until a
        process that had been ended was there again. The rest by their work.
        """
        rest, weights = self._rest(wall), self._weights()
        whole = sum(weights.values()) or 1.0
        found = {tenant: rest * weight / whole for tenant, weight in weights.items()}
        for tenant, cost in self._costs.items():
            found[tenant] += cost.processor + cost.starts + cost.preparing
        return found

    def trees(self, wall: float, processor: float) -> dict[int, Trees]:
        """What the trees of each tenant took, where all took so long by the clock.

        And the batch, beside growing them, so many processor seconds of this thread.
        What others take for it is guessed.
        """
        rest, weights = self._rest(wall), self._weights()
        whole = sum(weights.values()) or 1.0
        each = max(0.0, processor) / (whole + A_BATCH) + ELSEWHERE_SECONDS
        found = {}
        for tenant, updates in self._updates.items():
            cost = self._costs[tenant]
            found[tenant] = Trees(
                updates,
                cost.waited + rest * weights[tenant] / whole,
                cost.processor + each * cost.work,
                cost.preparing,
                cost.ran,
                cost.overlong,
            )
        return found

    def _rest(self, wall: float) -> float:
        return max(0.0, wall - sum(cost.waited for cost in self._costs.values()))

    def _weights(self) -> defaultdict[int, float]:
        weights: defaultdict[int, float] = defaultdict(float, self._own_work)
        for tenant, cost in self._costs.items():
            weights[tenant] += cost.work
        return weights
