"""Stage 3: run the tenants' code over the inputs: one frame a tenant into the sandbox."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from pipeline.sharing.spending import Spending
from pipeline.state.decided import Decided
from pipeline.steps import DIRECT_WRITE, Fold, NewUpdate, NewUpdates, PendingStep, Verdict
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
    decided: Decided,
    spending: Spending,
    within: float | None = None,
) -> tuple[NewUpdates, list[Verdict]]:
    """The new updates of each fold's composite, and the verdict of every computation.

    Direct writes come out between the computed ones, each at its place. Where subscribers
    have an outcome already, `decided` knows it, and it counts whatever comes out now.

    Raises TookTooLong where scripts take more than `within` seconds, or more than their
    tenants have left. With None they take what they take; it is noted in `spending` all
    the same.
    """
    by_tenant: dict[int, list[Fold]] = {}
    for fold in folds:
        by_tenant.setdefault(fold.tenant, []).append(fold)
    new: dict[StreamRef, list[NewUpdate]] = {}
    ended: list[Verdict] = []
    for tenant, theirs in by_tenant.items():
        calls = [fold.call for fold in theirs if _computes(fold.call)]
        answers = iter(_run(tenant, calls, sandbox, spending, within) if calls else [])
        for fold in theirs:
            outcomes = next(answers) if _computes(fold.call) else [None] * len(fold.steps)
            new[fold.composite] = _new_updates(fold, decided.outcomes(fold, outcomes), ended)
    return new, ended


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
    """Whether there is anything to ask: direct writes need no code."""
    return any(isinstance(each, Computation) for each in call.steps)


def _new_updates(fold: Fold, outcomes: Sequence[Outcome], ended: list[Verdict]) -> list[NewUpdate]:
    """What came out of a fold, in order of place; how its computations ended goes to `ended`."""
    new: list[NewUpdate] = []
    composite = fold.composite
    emitted, last_emitted = 0, None
    for pending, outcome in zip(fold.steps, outcomes, strict=True):
        step, _inputs, uses = pending
        if step.kind == DIRECT_WRITE:
            new.append(NewUpdate(step.place, step.update))
        elif isinstance(outcome, Value):
            update = SensorUpdate(composite, outcome.timestamp, outcome.document)
            new.append(NewUpdate(step.place, update, uses))
            emitted, last_emitted = emitted + 1, pending
        elif outcome is not None:
            ended.append(_verdict(composite, pending, outcome.kind, outcome.message))
    if last_emitted is not None:
        ended.append(_verdict(composite, last_emitted, EMITTED, "", emitted))
    return new


def _verdict(
    composite: StreamRef, pending: PendingStep, kind: str, message: str, times: int = 1
) -> Verdict:
    step = pending.step
    # What is stale has no inputs: those found so before the sandbox never had any.
    inputs = () if kind == STALE else pending.inputs
    return Verdict(step.place, composite, kind, step.update, message, inputs, times)
