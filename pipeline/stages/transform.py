"""Stage 3: run the tenants' code over the inputs: one frame a tenant into the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pipeline.journal import Journal, Made, Verdict
from pipeline.stages.dispatch import Arrival, Step
from pipeline.stages.fetch import Fold
from sandbox.program import Call, Outcome, Value
from servioticy.model import SensorUpdate, StreamRef


class Sandbox(Protocol):
    """Runs calls of one tenant; raises only where nobody's code is to blame."""

    def run(self, tenant: str, calls: Sequence[Call]) -> list[list[Outcome]]:
        """One outcome for each step of each call."""


def transform(folds: Sequence[Fold], sandbox: Sandbox, journal: Journal) -> list[Made]:
    """The derived updates, noted in the journal with the verdict of every computation."""
    by_tenant: dict[int, list[Fold]] = {}
    for fold in folds:
        by_tenant.setdefault(fold.tenant, []).append(fold)
    new: list[Made] = []
    for tenant, theirs in by_tenant.items():
        asking = [fold for fold in theirs if any(isinstance(s, Arrival) for s in fold.steps)]
        answers = sandbox.run(str(tenant), [fold.call for fold in asking]) if asking else []
        outcomes = dict(zip((fold.composite for fold in asking), answers, strict=True))
        for fold in theirs:
            ends = outcomes.get(fold.composite, [None] * len(fold.steps))
            new += _note(fold.composite, fold.steps, ends, journal)
    return new


def _note(
    composite: StreamRef, steps: Sequence[Step], outcomes: Sequence[Outcome], journal: Journal
) -> list[Made]:
    """Keep what came out, in order of place, between what was put from outside."""
    new = []
    for step, outcome in zip(steps, outcomes, strict=True):
        if not isinstance(step, Arrival):
            journal.assign(step.made)
        elif isinstance(outcome, Value):
            update = SensorUpdate(composite, outcome.timestamp, outcome.document)
            made = Made(step.place, update)
            journal.keep(made)
            journal.verdicts.append(Verdict(step.place, composite, "emitted", step.trigger, ""))
            new.append(made)
        elif outcome is not None:
            journal.verdicts.append(
                Verdict(step.place, composite, outcome.kind, step.trigger, outcome.message)
            )
    return new
