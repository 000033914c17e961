"""What decides whose updates come first, and whose composites rest: what was used so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pipeline.limits import SLICE_SECONDS, Limits
from pipeline.sharing.rules import Rules
from pipeline.sharing.shares import Shares
from pipeline.sharing.spending import Spending
from pipeline.sharing.used_up import UsedUp
from servioticy.domain.contested import CONTESTED_SECONDS
from servioticy.ports.accounts import StreamAccounts

A_BATCH = 20
"""What one transaction costs by itself, in computations: that is nobody's."""


@dataclass(frozen=True, slots=True)
class Fairness:
    """The accounts of one partition's time."""

    shares: Shares
    used_up: UsedUp = field(default_factory=lambda: UsedUp({}))

    @property
    def slice_seconds(self) -> float:
        """How much of a tenant is computed at once, by what its updates took so far."""
        return CONTESTED_SECONDS if self.shares.contested else SLICE_SECONDS

    def rules(self, limits: Limits, store: StreamAccounts, *, alone: bool) -> Rules:
        """How trees that came over borders are to be computed now. Raises Unavailable."""
        return Rules(limits, alone, self.used_up.refused(store))

    def note(
        self, spent: Iterable[tuple[int, Spending]], seconds: float, processor: float
    ) -> dict[int, float]:
        """Charge tenants for their pieces, and for what all took so long together: to store them.

        Of scripts what the processor did: nobody pays for waiting until it was free. The rest by
        their work. Returns what each was charged. What an update of theirs costs is learnt of
        what the processor did, here, too: on a busy machine everything takes long.
        """
        pieces = list(spent)
        whole = sum([each.work for _tenant, each in pieces])
        charged: dict[int, float] = {}
        for tenant, each in pieces:
            own = each.processor + processor * each.work / (whole + A_BATCH)
            self.shares.learn(tenant, own / max(1, each.updates))
            rest = seconds * each.work / (whole or 1.0)
            paid = each.processor + each.preparing + rest
            charged[tenant] = charged.get(tenant, 0.0) + paid
        self.shares.charge(charged)
        return charged
