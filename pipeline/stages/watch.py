"""Watches trees that grow step by step, against the limits and what is known of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from pipeline.evaluators.steps import Outcome
from pipeline.evaluators.stepwise import UNTOLD, Ask, Refusal, Stepwise
from pipeline.growth import Asked
from pipeline.limits import MAX_TREE_BYTES
from pipeline.sharing.rules import Rules
from pipeline.sharing.spending import Spending
from pipeline.stages.dispatch import MAX_SHED_NOTED
from pipeline.state.decided import Decided, Place
from pipeline.work import LoggedUpdate
from sandbox.trees import Path
from servioticy.domain.verdicts import COMPUTATION_LIMIT, SIZE_LIMIT, TIME_LIMIT

MAX_NOTED = 1000
MAX_NOTED_FOREIGN = 100
"""Verdicts of computations beyond their number: a row each is more than some are worth."""


class Watched(Stepwise):
    """Grows trees of several tenants.

    Where the batch is one tree `alone`, what is beyond a limit ends with its verdict, and what
    subscribers have got already counts.
    """

    def __init__(
        self,
        asked: Asked,
        ask: Ask,
        updates: Sequence[LoggedUpdate],
        rules: Rules,
        spending: Spending,
        decided: Decided,
    ) -> None:
        """`updates` are those of the batch."""
        super().__init__(asked.call, ask)
        self.knows_arrivals = not rules.alone
        self._region = asked.region
        self._updates = [updates[number] for number in asked.numbers]
        self._rules = rules
        self._spending = spending
        self._decided = decided

    def begin(self, tree: int) -> None:
        """Count anew."""
        super().begin(tree)
        self._update = self._updates[tree]
        self._counts: Counter[int] = Counter()
        self._refused: Counter[int] = Counter()
        self._seconds: defaultdict[int, float] = defaultdict(float)
        self._strangers_seconds = 0.0
        self._bytes: Counter[int] = Counter()
        self._shed = 0

    def clock(self) -> float:
        """Of the processor: nobody is cut because the machine is busy."""
        return self._spending.costs.processor

    def arrives(self, node: int, path: Path) -> Refusal | None:
        """Over its share or a quota, too deep, or one computation too many, if it is."""
        tenant, owner = self._region.stream(node).tenant, self._update.tenant
        refused = self._rules.refusal(tenant, owner)
        if refused is not None:
            self._shed += 1
            if self._shed > MAX_SHED_NOTED:
                return UNTOLD
            self._spending.costs.refuse(tenant, owner, 1)
            return refused
        if not self._rules.alone:
            return super().arrives(node, path)
        refusal = self.too_deep(path)
        if refusal is not None:
            return refusal
        self._counts[tenant] += 1
        most = self._spending.limits(tenant, owner).computations
        beyond = self._counts[tenant] - most
        if beyond <= 0:
            return None
        if beyond > (MAX_NOTED if tenant == owner else MAX_NOTED_FOREIGN):
            return UNTOLD
        return COMPUTATION_LIMIT, f"more than {most} computations from one update"

    def refuses(self, node: int, path: Path) -> Refusal | None:
        """Beyond the bytes or seconds of its tenant, if it is; what subscribers got never is."""
        if not self._rules.alone:
            return None
        stream = self._region.stream(node)
        refusal = self._beyond(stream.tenant)
        if refusal is None or self._decided.knows(stream.ref, self._place(path)):
            return None
        self._refused[stream.tenant] += 1
        return refusal if self._refused[stream.tenant] <= MAX_NOTED else UNTOLD

    def decides(self, node: int, path: Path, outcome: Outcome, seconds: float) -> Outcome:
        """What came out, or what subscribers got instead."""
        if not self._rules.alone:
            return outcome
        stream = self._region.stream(node)
        self._seconds[stream.tenant] += seconds
        if stream.tenant != self._update.tenant:
            self._strangers_seconds += seconds
        outcome = self._decided.outcome(stream.ref, self._place(path), outcome)
        if outcome.made is not None:
            self._bytes[stream.tenant] += len(outcome.made.document)
        return outcome

    def _beyond(self, tenant: int) -> Refusal | None:
        limits = self._spending.limits(tenant, self._update.tenant)
        whole = self._bytes.total() + len(self._update.document)
        crowded = whole > MAX_TREE_BYTES and tenant != self._update.tenant
        if self._bytes[tenant] > limits.tree_bytes or crowded:
            return SIZE_LIMIT, f"more than {limits.tree_bytes} bytes from one update"
        if self._seconds[tenant] > limits.tree_seconds:
            spent = f"more than {limits.tree_seconds:g} s of script time from one update"
            return TIME_LIMIT, spent
        return self._beyond_that_of_all(tenant)

    def _beyond_that_of_all(self, tenant: int) -> Refusal | None:
        """Beyond what all strangers have together, if it is one of them that takes much."""
        owner, most = self._update.tenant, self._spending.strangers_seconds
        if (
            tenant == owner
            or self._strangers_seconds < most
            or self._rules.is_light(tenant, owner)
        ):
            return None
        return TIME_LIMIT, f"more than {most:g} s of script time of other tenants from one update"

    def _place(self, path: Path) -> Place:
        return self._update.offset, len(path), path
