"""What the trees of a batch have cost so far, against what tenants may use."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from pipeline.errors import BatchTooLarge
from pipeline.limits import MAX_BATCH_BYTES, MAX_BATCH_COMPUTATIONS, MAX_TREE_BYTES, Limits


class Spending:
    """The costs of one batch. `owners` tells whose update a tree has grown from, by its offset."""

    def __init__(self, limits: Limits, owners: Mapping[int, int]) -> None:
        self._own = limits
        self._foreign = limits._replace(
            computations=max(1, int(limits.computations * limits.foreign)),
            tree_bytes=max(1, int(limits.tree_bytes * limits.foreign)),
            tree_seconds=limits.tree_seconds * limits.foreign,
        )
        self._owners = owners
        self.tenants = frozenset(owners.values())
        """Whose updates they are that the trees grow from."""
        self._computations: Counter[int] = Counter()
        self._all_computations = 0
        self._all_bytes = 0
        self.seconds: defaultdict[int, float] = defaultdict(float)
        """Of waiting for the scripts of each tenant."""
        self.script_seconds: defaultdict[int, float] = defaultdict(float)
        """What the processor did for them: less, where the machine is busy."""
        self.latest: int | None = None
        """Whose scripts were run last."""

    def limits(self, tenant: int, owner: int) -> Limits:
        """How far the tenant's part of a tree may go that has grown from the owner's update."""
        return self._own if tenant == owner else self._foreign

    def part(self, tenant: int, owner: int, parts: int) -> tuple[int, int]:
        """So many computations and bytes of its limits the tenant has in one of several parts."""
        limits = self._own if tenant == owner else self._foreign
        return limits.computations // parts, limits.tree_bytes // parts

    def count(self, tenant: int, computations: int) -> None:
        """Note computations. Raises BatchTooLarge where several trees have too many together."""
        self._computations[tenant] += computations
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
        limits = self._own if tenant in self.tenants else self._foreign
        return limits.tree_seconds - self.seconds[tenant]

    def shared_out(self, seconds: float) -> dict[int, float]:
        """The time of the whole batch by tenant: scripts as measured, the rest by their work."""
        rest = max(0.0, seconds - sum(self.seconds.values()))
        weights = Counter(self._owners.values())
        weights.update(self._computations)
        whole = weights.total() or 1
        return {
            tenant: self.seconds.get(tenant, 0.0) + rest * count / whole
            for tenant, count in weights.items()
        }
