"""What workflows cost: what was done times prices, and what a document would cost before it runs.

The paper's Table I charges memory for as long as a function has it, as its cloud does; beside it
stands here what the processor took, and a price for each atom.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from servioticy.domain.workflows.model import CALLBACK, SINK, SOURCE, STREAM, Workflow
from servioticy.settings.outward import Usage

MILLION = 1_000_000
MEBIBYTE_MS_OF_A_GIBIBYTE_HOUR = 1_024 * 3_600_000
ASSUMED_MS = 1.0
"""Of processor and of time, for an atom in a procedure of which nothing has been measured."""


class Work(NamedTuple):
    """What a step has done."""

    atoms: float = 0.0
    made: float = 0.0
    """Along all links."""
    processor_us: float = 0.0
    mebibyte_ms: float = 0.0

    @property
    def gibibyte_hours(self) -> float:
        """Memory that was held."""
        return self.mebibyte_ms / MEBIBYTE_MS_OF_A_GIBIBYTE_HOUR


def cost(prices: Usage, work: Work) -> float:
    """Return what a step's work costs."""
    return (
        work.atoms / MILLION * prices.per_million_atoms
        + work.processor_us / 3.6e9 * prices.per_processor_hour
        + work.gibibyte_hours * prices.per_gibibyte_hour
    )


def amounts(prices: Usage, work: Work) -> dict[str, float]:
    """Return what a step's work took, and costs, as it is told."""
    return {
        "processorSeconds": work.processor_us / 1e6,
        "gibibyteHours": work.gibibyte_hours,
        "cost": cost(prices, work),
    }


def estimate(
    workflow: Workflow,
    memory_mib: Mapping[int, int],
    measured: Mapping[str, Work],
    prices: Usage,
) -> dict[str, Any]:
    """Return what a million atoms of the source would cost.

    `memory_mib` is what each procedure may have, by its step. What was measured of steps of the
    same names is taken for granted; of others it is assumed that each makes one atom of one, and
    takes a millisecond for it.
    """
    coming = dict.fromkeys(range(workflow.sink_step + 1), 0.0)
    for step in workflow.first_steps:
        coming[step] += MILLION
    steps: dict[str, Any] = {}
    if workflow.files is not None and SOURCE in measured:
        own = measured[SOURCE]
        each = own.processor_us / own.made if own.made else 0.0
        steps[SOURCE] = _told(prices, Work(0.0, 0.0, MILLION * each), is_measured=True)
    for step, procedure in enumerate(workflow.procedures):
        links, atoms = workflow.links[procedure.name], coming[step]
        known = measured.get(procedure.name, Work())
        if is_measured := known.atoms > 0:
            share = atoms / known.atoms
            made = known.made * share / len(links)
            work = Work(atoms, made, known.processor_us * share, known.mebibyte_ms * share)
        else:
            made, ms = atoms, atoms * ASSUMED_MS
            work = Work(atoms, made, ms * 1_000, ms * memory_mib[step])
        for to in links:
            coming[to] += made
        steps[procedure.name] = _told(prices, work, is_measured=is_measured)
    sink = Work(coming[workflow.sink_step])
    steps[SINK] = _told(prices, sink, is_measured=False)
    if workflow.sink == CALLBACK:
        steps[SINK]["cost"] += sink.atoms / MILLION * prices.per_million_deliveries
    elif workflow.sink == STREAM:
        steps[SINK]["cost"] += sink.atoms / MILLION * prices.per_million_updates
    return {
        "atoms": MILLION,
        "cost": sum(each["cost"] for each in steps.values()),
        "steps": steps,
        "assumed": {"millisecondsPerAtom": ASSUMED_MS},
    }


def _told(prices: Usage, work: Work, *, is_measured: bool) -> dict[str, Any]:
    return {
        "atoms": round(work.atoms),
        **amounts(prices, work),
        "measured": is_measured,
    }
