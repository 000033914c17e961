"""What a batch has cost: whose composites did how much in the trees of whose updates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
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

Pair = tuple[int, int]
"""Whose composites, and whose updates the trees are grown from."""


class Trees(NamedTuple):
    """What the trees of one tenant's updates took, whosesoever composites are in them."""

    updates: int
    seconds: float = 0.0
    """Of all, by the clock on the wall."""
    processor: float = 0.0
    """For the computations in them, in seconds, without the starts of processes."""
    preparing: float = 0.0
    """To make programs ready for them, likewise."""
    runners: Set[int] = frozenset()
    """Whose scripts have run."""
    overlong: bool = False
    """Whether one of them took too long by itself."""


class Foreign(NamedTuple):
    """What the composites of one tenant took in the trees of another."""

    seconds: float = 0.0
    """Of the processor, for the computations."""
    trees: float = 0.0
    starts: float = 0.0
    """Seconds of the processor, of processes and until programs are ready in them."""
    overlong: bool = False
    """Whether one tree may have taken too long by itself."""


@dataclass(slots=True)
class _Cost:
    """Of one pair."""

    trees: set[int] = field(default_factory=set)
    processor: float = 0.0
    starts: float = 0.0
    preparing: float = 0.0
    at_most: float = 0.0
    """Of the processor, where trees of others were grown with these: who knows which took it."""
    work: float = 0.0
    refused: float = 0.0
    """Work that was left of what was not computed."""
    overlong: bool = False


class Costs:
    """The costs of one batch, by pair; what each user of them wants are sums of these."""

    def __init__(self, updates: Mapping[int, int], sizes: Mapping[int, int] = NO_SIZES) -> None:
        """`updates` and `sizes` have the number of updates and their bytes by tenant."""
        self._updates = updates
        self._own_work = {
            tenant: number + sizes.get(tenant, 0) / BYTES_A_COMPUTATION
            for tenant, number in updates.items()
        }
        self._overlong: set[int] = set()
        """By owner of the trees."""
        self._pairs: defaultdict[Pair, _Cost] = defaultdict(_Cost)
        self._waited: defaultdict[int, float] = defaultdict(float)
        """By owner of the trees."""
        self.processor = 0.0
        """Seconds for all computations so far, without what was there to be ready for them."""
        self.ours = 0.0
        """Those of them that were this thread's."""
        self.of_strangers = 0.0
        """The same, of those in trees of others."""

    def ran(
        self,
        runner: int,
        trees: Mapping[int, Set[int]],
        waited: float,
        used: ProcessorSeconds,
        ours: float,
    ) -> None:
        """Note that the runner's trees were grown: their numbers, by whose updates they are.

        It was waited so long for that; `ours` is what it took of the processor in this thread.
        Each tree is taken to have needed as much as the others. One that took too long is its
        owner's where nobody else's were grown, or the runner's where one of its own was.
        """
        processor = used.programs + ours
        self.processor += processor
        self.ours += ours
        whole = sum(map(len, trees.values()))
        others = whole - len(trees.get(runner, ()))
        if used.overlong:
            self._overlong |= trees.keys() & {runner} if len(trees) > 1 else trees.keys()
        for owner, numbers in trees.items():
            part = len(numbers) / whole
            cost = self._pairs[runner, owner]
            cost.overlong |= used.overlong > 0
            cost.trees |= numbers
            cost.processor += processor * part
            cost.starts += used.starts * part
            cost.preparing += used.preparing * part
            cost.at_most += processor * (part if owner == runner else len(numbers) / others)
            self._waited[owner] += waited * part
            if owner != runner:
                self.of_strangers += processor * part

    def count(
        self, runner: int, trees: Mapping[int, Set[int]], computations: int, size: int = 0
    ) -> None:
        """Note computations of the runner in these trees, and the bytes of what they made."""
        work = computations + size / BYTES_A_COMPUTATION
        whole = sum(map(len, trees.values()))
        for owner, numbers in trees.items():
            self._pairs[runner, owner].work += work * len(numbers) / whole

    def refuse(self, runner: int, owner: int, verdicts: int) -> None:
        """Note that composites of the runner were not computed, and what is told of that."""
        self._pairs[runner, owner].refused += verdicts

    def by_runner(self, wall: float) -> dict[int, float]:
        """The time of the whole batch by tenant, where it took so long by the clock.

        Of scripts what the processor did: nobody pays for waiting until it was free, or until a
        process that had been ended was there again. The rest by their work.
        """
        rest = max(0.0, wall - sum(self._waited.values()))
        weights: defaultdict[int, float] = defaultdict(float, self._own_work)
        found: defaultdict[int, float] = defaultdict(float)
        for (runner, _owner), cost in self._pairs.items():
            weights[runner] += cost.work + cost.refused
            found[runner] += cost.processor + cost.starts + cost.preparing
        whole = sum(weights.values()) or 1.0
        for tenant, weight in weights.items():
            found[tenant] += rest * weight / whole
        return dict(found)

    def by_owner(self, wall: float, processor: float) -> dict[int, Trees]:
        """What the trees of each tenant's updates took, where all took so long by the clock.

        And the batch, beside growing them, so many processor seconds of this thread.
        What others take for it is guessed.
        """
        rest = max(0.0, wall - sum(self._waited.values()))
        each = self._of_work(processor)
        weights: defaultdict[int, float] = defaultdict(float, self._own_work)
        took: defaultdict[int, float] = defaultdict(float)
        preparing: defaultdict[int, float] = defaultdict(float)
        runners: defaultdict[int, set[int]] = defaultdict(set)
        for (runner, owner), cost in self._pairs.items():
            work = cost.work + cost.refused
            weights[owner] += work
            took[owner] += cost.at_most + each * work
            preparing[owner] += cost.preparing
            if cost.trees:
                runners[owner].add(runner)
        whole = sum(weights.values()) or 1.0
        return {
            owner: Trees(
                updates,
                self._waited[owner] + rest * weights[owner] / whole,
                took[owner],
                preparing[owner],
                runners[owner],
                owner in self._overlong,
            )
            for owner, updates in self._updates.items()
        }

    def foreign(self, processor: float) -> dict[Pair, Foreign]:
        """What was computed in trees of others.

        The batch took so many processor seconds of this thread beside growing them; what others
        take for it is guessed.
        """
        each = self._of_work(processor)
        return {
            (runner, owner): Foreign(
                cost.processor + each * cost.work,
                len(cost.trees),
                cost.starts + cost.preparing,
                cost.overlong,
            )
            for (runner, owner), cost in self._pairs.items()
            if runner != owner and cost.trees
        }

    def _of_work(self, processor: float) -> float:
        """Processor seconds for as much as a computation is: of this thread, and elsewhere."""
        work = sum(each.work + each.refused for each in self._pairs.values())
        whole = work + sum(self._own_work.values()) + A_BATCH
        return max(0.0, processor) / whole + ELSEWHERE_SECONDS
