"""Stage 3: run the tenants' code over the inputs: one frame a tenant into the sandbox."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from pipeline.decided import Decided
from pipeline.journal import Journal, Made, Verdict
from pipeline.sharing.spending import Spending
from pipeline.stages.dispatch import Put
from pipeline.stages.fetch import Asked, Fold
from sandbox.program import Call, Computation, Outcome, Value
from servioticy.domain.model import SensorUpdate, StreamRef
from servioticy.domain.verdicts import EMITTED, STALE


class Sandbox(Protocol):
    """Runs calls of one tenant; raises only where nobody's code is to blame."""

    def run(
        self, tenant: str, calls: Sequence[Call], within: float | None = None
    ) -> list[list[Outcome]]:
        """One outcome for each step of each call. Raises TookTooLong after so many seconds."""


def transform(
    folds: Sequence[Fold],
    sandbox: Sandbox,
    journal: Journal,
    decided: Decided,
    spending: Spending,
    within: float | None = None,
) -> list[Made]:
    """The derived updates, noted in the journal with the verdict of every computation.

    What subscribers have got already is `decided`, whatever comes out now.

    Raises TookTooLong where scripts take more than `within` seconds, or more than their
    tenants have left. With None they take what they take, which is noted all the same.
    """
    by_tenant: dict[int, list[Fold]] = {}
    for fold in folds:
        by_tenant.setdefault(fold.tenant, []).append(fold)
    new: list[Made] = []
    for tenant, theirs in by_tenant.items():
        calls = [fold.call for fold in theirs if _computes(fold.call)]
        answers = iter(_run(tenant, calls, sandbox, spending, within) if calls else [])
        for fold in theirs:
            outcomes = next(answers) if _computes(fold.call) else [None] * len(fold.asked)
            new += _note(fold, decided.outcomes(fold, outcomes), journal)
    return new


def _run(
    tenant: int, calls: Sequence[Call], sandbox: Sandbox, spending: Spending, within: float | None
) -> list[list[Outcome]]:
    began = time.monotonic()
    spending.latest = tenant
    try:
        most = None if within is None else min(within, spending.seconds_left(tenant))
        return sandbox.run(str(tenant), calls, most)
    finally:
        spending.seconds[tenant] += time.monotonic() - began


def _computes(call: Call) -> bool:
    """Whether there is anything to ask: what is only put from outside needs no code."""
    return any(isinstance(each, Computation) for each in call.steps)


def _note(fold: Fold, outcomes: Sequence[Outcome], journal: Journal) -> list[Made]:
    """Keep what came out, in order of place, between what was put from outside."""
    new: list[Made] = []
    composite = fold.composite
    timeline = journal.timeline(composite)
    last_emitted: Asked | None = None
    for asked, outcome in zip(fold.asked, outcomes, strict=True):
        step, _inputs, uses = asked
        if isinstance(step, Put):
            timeline.add(step.made)
        elif isinstance(outcome, Value):
            made = Made(step.place, SensorUpdate(composite, outcome.timestamp, outcome.document))
            timeline.add(made, uses)
            new.append(made)
            last_emitted = asked
        elif outcome is not None:
            journal.end(_verdict(composite, asked, outcome.kind, outcome.message))
    journal.keep_later(new)
    if last_emitted is not None:
        journal.end(_verdict(composite, last_emitted, EMITTED, ""), len(new))
    return new


def _verdict(composite: StreamRef, asked: Asked, kind: str, message: str) -> Verdict:
    step = asked.step
    trigger = step.made.update if isinstance(step, Put) else step.trigger
    # What is stale has no inputs: those found so before the sandbox never had any.
    inputs = () if kind == STALE else asked.inputs
    return Verdict(step.place, composite, kind, trigger, message, inputs)
