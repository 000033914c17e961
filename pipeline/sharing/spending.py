"""What the trees of a batch have cost so far, against what tenants may use."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from pipeline.errors import BatchTooLarge
from pipeline.limits import MAX_BATCH_BYTES, MAX_BATCH_COMPUTATIONS, MAX_TREE_BYTES, Limits
from pipeline.sharing.pace import Trees
from pipeline.sharing.strangers import Foreign
from sandbox import ProcessorSeconds

NOTHING = Trees(0)


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
        self.used: defaultdict[int, ProcessorSeconds] = defaultdict(ProcessorSeconds)
        """By tenant: less than that, where the machine is busy or a process had to be waited
        for."""
        self.foreign: defaultdict[int, Foreign] = defaultdict(Foreign)
        """What the scripts of each tenant took in the trees of others."""
        self._strangers_seconds = 0.0
        """The same, of all of them together and without the starts of processes."""
        self._grown: dict[int, Trees] = {}
        """By whose trees they are: without what is not of scripts."""
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

    def ran(
        self, tenant: int, trees: Mapping[int, int], waited: float, used: ProcessorSeconds
    ) -> None:
        """Note that a tenant's scripts have run in so many trees of each owner.

        Each tree is taken to have needed as much as the others.
        """
        self.seconds[tenant] += waited
        self.used[tenant] = self.used[tenant].plus(used)
        whole = sum(trees.values())
        for owner, count in trees.items():
            part = count / whole
            known = self._grown.get(owner, NOTHING)
            self._grown[owner] = Trees(
                0,
                known.seconds + waited * part,
                known.script_seconds + used.programs * part,
                known.runners | {tenant},
            )
        foreign = whole - trees.get(tenant, 0)
        if foreign:
            before = self.foreign[tenant]
            seconds = before.seconds + sum(used) * foreign / whole
            # A tree that is grown step by step comes more than once.
            self.foreign[tenant] = Foreign(seconds, max(before.trees, foreign))
            self._strangers_seconds += used.programs * foreign / whole

    def seconds_left(self, tenant: int) -> float:
        """How long scripts of a tenant may still take, in a batch of one or more trees."""
        if tenant in self.tenants:
            return self._own.tree_seconds - self.seconds[tenant]
        return (
            0.0 if self.are_strangers_done else self._foreign.tree_seconds - self.seconds[tenant]
        )

    @property
    def are_strangers_done(self) -> bool:
        """Whether those whose update it is not have together had what its owner may have."""
        return self._strangers_seconds >= self._own.tree_seconds

    def shared_out(self, seconds: float) -> dict[int, float]:
        """The time of the whole batch by tenant, where that took so long by the clock.

        Of scripts what the processor did: nobody pays for waiting until it was free, or until a
        process that had been ended was there again. The rest by their work.
        """
        rest = self._rest(seconds)
        weights = Counter(self._owners.values())
        weights.update(self._computations)
        whole = weights.total() or 1
        return {
            tenant: sum(self.used[tenant]) + rest * weights[tenant] / whole
            for tenant in weights.keys() | self.used.keys()
        }

    def trees(self, seconds: float) -> dict[int, Trees]:
        """What the trees of each tenant's updates took, where all took so long by the clock."""
        rest = self._rest(seconds)
        updates = Counter(self._owners.values())
        found = {}
        for tenant, count in updates.items():
            known = self._grown.get(tenant, NOTHING)
            own = rest * count / updates.total()
            found[tenant] = known._replace(updates=count, seconds=known.seconds + own)
        return found

    def _rest(self, seconds: float) -> float:
        """What was not waited for scripts."""
        return max(0.0, seconds - sum(self.seconds.values()))
