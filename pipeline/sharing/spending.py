"""What the trees of a batch have cost so far, against what tenants may use."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TypeVar

from pipeline.errors import BatchTooLarge
from pipeline.limits import MAX_BATCH_BYTES, MAX_BATCH_COMPUTATIONS, Limits
from pipeline.sharing.costs import NO_SIZES, Costs

Key = TypeVar("Key")


class Spending:
    """The costs of one batch."""

    def __init__(
        self, limits: Limits, owners: Mapping[Key, int], sizes: Mapping[int, int] = NO_SIZES
    ) -> None:
        """`owners` tells whose each tree is, `sizes` has the bytes of a tenant's updates."""
        self._limits = limits
        self._trees = len(owners)
        self.costs = Costs(Counter(owners.values()), sizes)
        self._all_computations = 0
        self._all_bytes = 0
        self.seconds: defaultdict[int, float] = defaultdict(float)
        """Of waiting for the scripts of each tenant."""

    def count(self, computations: int) -> None:
        """Note computations. Raises BatchTooLarge where several trees have too many together."""
        self._all_computations += computations
        if self._all_computations > MAX_BATCH_COMPUTATIONS and self._trees > 1:
            raise BatchTooLarge

    def add_bytes(self, size: int) -> None:
        """Note documents to store. Raises BatchTooLarge as the other does."""
        self._all_bytes += size
        if self._all_bytes > MAX_BATCH_BYTES and self._trees > 1:
            raise BatchTooLarge

    def seconds_left(self, tenant: int) -> float:
        """How long scripts of a tenant may still take, in a batch of one or more trees."""
        return self._limits.tree_seconds - self.seconds[tenant]
