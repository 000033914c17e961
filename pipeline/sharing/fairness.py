"""What decides whose updates come first, and whose composites rest: what was used so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.limits import CONTESTED_SECONDS, SLICE_SECONDS, Limits
from pipeline.sharing.costs import Costs
from pipeline.sharing.pace import Pace
from pipeline.sharing.rules import Rules
from pipeline.sharing.shares import Shares
from pipeline.sharing.used_up import UsedUp
from servioticy.ports.partition_store import PartitionStore


@dataclass(frozen=True, slots=True)
class Fairness:
    """The accounts of one partition's time."""

    shares: Shares
    pace: Pace = field(default_factory=Pace)
    used_up: UsedUp = field(default_factory=lambda: UsedUp({}))

    @property
    def slice_seconds(self) -> float:
        """How long what is computed at once may take, by what updates took so far."""
        return CONTESTED_SECONDS if self.shares.contested else SLICE_SECONDS

    def rules(self, limits: Limits, store: PartitionStore, *, alone: bool) -> Rules:
        """How trees that came over borders are to be computed now. Raises Unavailable."""
        return Rules(limits, alone, self.used_up.refused(store))

    def note(self, costs: Costs, wall: float, processor: float, *, whole: bool = True) -> None:
        """Charge the tenants for a batch that took so many seconds, and learn from it.

        `processor`: what it took of that in this thread. Where it was not computed as a `whole`,
        nothing is learnt of those whose turn had not come.
        """
        self.shares.charge(costs.seconds(wall))
        trees = costs.trees(wall, processor - costs.ours)
        self.pace.learn({owner: each for owner, each in trees.items() if whole or each.ran})
