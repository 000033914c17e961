"""What the trees of a batch have cost so far, against what tenants may use."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from pipeline.errors import BatchTooLarge
from pipeline.limits import MAX_BATCH_BYTES, MAX_BATCH_COMPUTATIONS, MAX_TREE_BYTES, Limits
from pipeline.sharing.costs import NO_SIZES, Costs


class Spending:
    """The costs of one batch."""

    def __init__(
        self, limits: Limits, owners: Mapping[int, int], sizes: Mapping[int, int] = NO_SIZES
    ) -> None:
        """`owners` tells whose update a tree has grown from, by its offset.

        `sizes` has the bytes of a tenant's updates.
        """
        self._own = limits
        self._foreign = limits._replace(
            computations=max(1, int(limits.computations * limits.foreign)),
            tree_bytes=max(1, int(limits.tree_bytes * limits.foreign)),
            tree_seconds=limits.tree_seconds * limits.foreign,
        )
        self._owners = owners
        self.tenants = frozenset(owners.values())
        """Whose updates they are that the trees grow from."""
        self.costs = Costs(Counter(owners.values()), sizes)
        self._all_computations = 0
        self._all_bytes = 0
        self.seconds: defaultdict[int, float] = defaultdict(float)
        """Of waiting for the scripts of each tenant."""
        self.latest: int | None = None
        """Whose scripts were run last."""

    def limits(self, tenant: int, owner: int) -> Limits:
        """How far the tenant's part of a tree may go that has grown from the owner's update."""
        return self._own if tenant == owner else self._foreign

    def part(self, tenant: int, owner: int, parts: int) -> tuple[int, int]:
        """So many computations and bytes of its limits the tenant has in one of several parts."""
        limits = self.limits(tenant, owner)
        return limits.computations // parts, limits.tree_bytes // parts

    def count(self, computations: int) -> None:
        """Note computations. Raises BatchTooLarge where several trees have too many together."""
        self._all_computations += computations
        if self._all_computations > MAX_BATCH_COMPUTATIONS and len(self._owners) > 1:
            raise BatchTooLarge

    def add_bytes(self, size: int) -> None:
        """Note documents to store. Raises BatchTooLarge as the other does."""
        self._all_bytes += size
        if self._all_bytes > MAX_BATCH_BYTES and len(self._owners) > 1:
            raise BatchTooLarge

    @property
    def is_crowded(self) -> bool:
        """Whether the documents fill a transaction: then those end whose update it is not."""
        return self._all_bytes > MAX_TREE_BYTES

    def seconds_left(self, tenant: int) -> float:
        """How long scripts of a tenant may still take, in a batch of one or more trees."""
        if tenant in self.tenants:
            return self._own.tree_seconds - self.seconds[tenant]
        if self.costs.of_strangers >= self.strangers_seconds:
            return 0.0
        return self._foreign.tree_seconds - self.seconds[tenant]

    @property
    def strangers_seconds(self) -> float:
        """Of the processor: so long may run in a tree what others compute in it, all together."""
        return self._own.tree_seconds
