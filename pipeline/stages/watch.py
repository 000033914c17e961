"""Watches trees that grow step by step, against the limits and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.growth import Asked
from pipeline.sharing.rules import Rules
from pipeline.sharing.spending import Spending
from pipeline.state.decided import Decided, Place
from pipeline.work import LoggedUpdate
from sandbox.trees import Path
from servioticy.domain.evaluators.steps import Outcome
from servioticy.domain.evaluators.stepwise import UNTOLD, Ask, Refusal, Stepwise
from servioticy.domain.verdicts import COMPUTATION_LIMIT, SIZE_LIMIT, TIME_LIMIT

MAX_NOTED = 1000
"""Verdicts of computations beyond their number: a row each is more than some are worth."""


class Watched(Stepwise):
    """Grows trees that no evaluator grows whole.

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
        self._computed = self._refused = self._bytes = 0
        self._seconds = 0.0

    def clock(self) -> float:
        """Of the processor: nobody is cut because the machine is busy."""
        return self._spending.processor

    def arrives(self, node: int, path: Path) -> Refusal | None:
        """Too deep, or one computation too many, if it is."""
        if not self._rules.alone:
            return super().arrives(node, path)
        refusal = self.too_deep(path)
        if refusal is not None:
            return refusal
        self._computed += 1
        most = self._rules.limits.computations
        beyond = self._computed - most
        if beyond <= 0:
            return None
        if beyond > MAX_NOTED:
            return UNTOLD
        return COMPUTATION_LIMIT, f"more than {most} computations from one update"

    def refuses(self, node: int, path: Path) -> Refusal | None:
        """Beyond the bytes or seconds of its tenant, if it is; what subscribers got never is."""
        if not self._rules.alone:
            return None
        stream = self._region.stream(node)
        refusal = self._beyond()
        if refusal is None or self._decided.knows(stream.tenant, stream.ref, self._place(path)):
            return None
        self._refused += 1
        return refusal if self._refused <= MAX_NOTED else UNTOLD

    def decides(self, node: int, path: Path, outcome: Outcome, seconds: float) -> Outcome:
        """What came out, or what subscribers got instead."""
        if not self._rules.alone:
            return outcome
        stream = self._region.stream(node)
        self._seconds += seconds
        # What operators make follows from the log alone, and one computation may make several.
        if not self.call.wiring.nodes[node].keeps:
            place = self._place(path)
            outcome = self._decided.outcome(stream.tenant, stream.ref, place, outcome)
        self._bytes += sum([len(each.document) for each in outcome.made])
        return outcome

    def _beyond(self) -> Refusal | None:
        limits = self._rules.limits
        if self._bytes > limits.tree_bytes:
            return SIZE_LIMIT, f"more than {limits.tree_bytes} bytes from one update"
        if self._seconds > limits.tree_seconds:
            spent = f"more than {limits.tree_seconds:g} s of script time from one update"
            return TIME_LIMIT, spent
        return None

    def _place(self, path: Path) -> Place:
        return self._update.offset, len(path), path
