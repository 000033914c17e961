"""Whose updates are computed now: who has had how much time, and how long updates take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.sharing.pace import Pace, count_by_tenant
from pipeline.sharing.shares import Shares


@dataclass(frozen=True, slots=True)
class Fairness:
    """The accounts of one partition's time."""

    shares: Shares
    pace: Pace = field(default_factory=Pace)

    def note_batch(self, owners: Mapping[int, int], spent: Mapping[int, float]) -> None:
        """Charge the tenants for a batch, and learn from it how long updates take.

        `owners` tells whose each update of the batch was, `spent` the seconds by tenant.
        """
        self.shares.saw(spent)
        self.shares.charge(spent)
        if owners:
            self.pace.learn(count_by_tenant(owners), spent)
