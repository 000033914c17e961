"""What execution trees have cost so far, tenant by tenant, against their limits."""

from __future__ import annotations

from collections import Counter, defaultdict

from pipeline.errors import BatchTooLarge
from pipeline.limits import MAX_BATCH_BYTES, MAX_BATCH_COMPUTATIONS, MAX_TREE_BYTES, Limits
from servioticy.domain.verdicts import COMPUTATION_LIMIT, SIZE_LIMIT, TIME_LIMIT

MAX_NOTED = 1000
MAX_NOTED_FOREIGN = 100
"""Verdicts of computations beyond their number: a row each is more than some are worth."""

Part = tuple[int, int]
"""A tenant's part of an execution tree: the offset of the source update, and the tenant."""


class Spending:
    """The costs of one batch. `owners` tells whose update a tree has grown from."""

    def __init__(self, limits: Limits, owners: dict[int, int]) -> None:
        self._limits = limits
        self._foreign = limits._replace(
            computations=max(1, int(limits.computations * limits.foreign)),
            tree_bytes=max(1, int(limits.tree_bytes * limits.foreign)),
            tree_seconds=limits.tree_seconds * limits.foreign,
        )
        self._owners = owners
        self._own = frozenset(owners.values())
        self.computations: Counter[Part] = Counter()
        self._bytes: Counter[Part] = Counter()
        self._refused: Counter[Part] = Counter()
        self._all_computations = 0
        self._all_bytes = 0
        self.seconds: defaultdict[int, float] = defaultdict(float)
        """of waiting for the scripts of each tenant"""
        self.latest: int | None = None
        """whose scripts were run last"""

    def owner(self, offset: int) -> int | None:
        """Whose update it is that the tree of this offset grows from."""
        return self._owners.get(offset)

    def count(self, part: Part) -> None:
        """Note a computation to come. Raises BatchTooLarge where there are too many trees."""
        self.computations[part] += 1
        self._all_computations += 1
        if self._all_computations > MAX_BATCH_COMPUTATIONS and len(self._owners) > 1:
            raise BatchTooLarge

    def add_raw_bytes(self, size: int) -> None:
        """Note a document to store. Raises BatchTooLarge as the others do."""
        self._all_bytes += size
        if self._all_bytes > MAX_BATCH_BYTES and len(self._owners) > 1:
            raise BatchTooLarge

    def add_bytes(self, part: Part, size: int) -> None:
        """Note an output. Raises BatchTooLarge where there are too many trees."""
        self._bytes[part] += size
        self.add_raw_bytes(size)

    def is_counted_out(self, part: Part) -> bool:
        """Whether the part has more computations than it may."""
        return self.computations[part] > self._of(part).computations

    def is_noted(self, part: Part) -> bool:
        """Whether a computation beyond the limit gets a verdict: the first ones do."""
        beyond = self.computations[part] - self._of(part).computations
        return beyond <= (MAX_NOTED if self._owners.get(part[0]) == part[1] else MAX_NOTED_FOREIGN)

    def note_refusal(self, part: Part) -> bool:
        """Whether one more computation that a limit ends gets a verdict: the first ones do."""
        self._refused[part] += 1
        return self._refused[part] <= MAX_NOTED

    def is_too_large(self, part: Part) -> bool:
        """Whether the outputs of the part have more bytes than they may."""
        return self._bytes[part] > self._of(part).tree_bytes or self._is_crowded(part)

    def _is_crowded(self, part: Part) -> bool:
        """Whether others' outputs fill the transaction of a tree that is not theirs."""
        return self._all_bytes > MAX_TREE_BYTES and self._owners.get(part[0]) != part[1]

    def refusal(self, part: Part) -> tuple[str, str] | None:
        """The verdict and message of a computation beyond a limit, one tree alone."""
        limits = self._of(part)
        if self._bytes[part] > limits.tree_bytes or self._is_crowded(part):
            return SIZE_LIMIT, f"more than {limits.tree_bytes} bytes from one update"
        if self.seconds[part[1]] > limits.tree_seconds:
            spent = f"more than {limits.tree_seconds:g} s of script time from one update"
            return TIME_LIMIT, spent
        return None

    def computation_refusal(self, part: Part) -> tuple[str, str]:
        """The verdict and message of a computation that is one too many."""
        most = self._of(part).computations
        return COMPUTATION_LIMIT, f"more than {most} computations from one update"

    def seconds_left(self, tenant: int) -> float:
        """How long scripts of a tenant may still take, in a batch of one or more trees."""
        limits = self._limits if tenant in self._own else self._foreign
        return limits.tree_seconds - self.seconds[tenant]

    def _of(self, part: Part) -> Limits:
        return self._limits if self._owners.get(part[0]) == part[1] else self._foreign

    def shared_out(self, seconds: float) -> dict[int, float]:
        """The time of the whole batch by tenant: scripts as measured, the rest by their work."""
        rest = max(0.0, seconds - sum(self.seconds.values()))
        weights = Counter(self._owners.values())
        for (_offset, tenant), count in self.computations.items():
            weights[tenant] += count
        whole = weights.total() or 1
        return {
            tenant: self.seconds.get(tenant, 0.0) + rest * count / whole
            for tenant, count in weights.items()
        }
