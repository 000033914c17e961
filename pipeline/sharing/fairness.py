"""What decides whose updates come first, and whose composites rest: what was used so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.limits import CONTESTED_SECONDS, SLICE_SECONDS
from pipeline.sharing.pace import Pace
from pipeline.sharing.rules import ITS_SHARE, STRANGERS_SHARE, Refusal
from pipeline.sharing.shares import Shares
from pipeline.sharing.spending import Spending
from pipeline.sharing.strangers import Strangers
from pipeline.sharing.used_up import UsedUp
from servioticy.ports.partition_store import PartitionStore


@dataclass(frozen=True, slots=True)
class Fairness:
    """The accounts of one partition's time."""

    shares: Shares
    pace: Pace = field(default_factory=Pace)
    strangers: Strangers = field(default_factory=lambda: Strangers(1.0))
    used_up: UsedUp = field(default_factory=lambda: UsedUp({}))

    @property
    def slice_seconds(self) -> float:
        """How long what is computed at once may take, by what updates took so far."""
        return CONTESTED_SECONDS if self.shares.contested else SLICE_SECONDS

    def refused(self, store: PartitionStore) -> Mapping[int, Refusal]:
        """Tenants whose composites others' updates do not wake now. Raises Unavailable."""
        return {
            **dict.fromkeys(self.strangers.over(), STRANGERS_SHARE),
            **dict.fromkeys(self.shares.over(), ITS_SHARE),
            **self.used_up.refused(store),
        }

    def note(self, spending: Spending, seconds: float) -> None:
        """Charge the tenants for a batch of so many seconds; learn from it what trees take."""
        self.shares.charge(spending.shared_out(seconds))
        self.strangers.charge(spending.foreign)
        self.pace.learn(spending.trees(seconds))
