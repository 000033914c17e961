"""What workflows cost: what was measured, or is assumed, times prices."""

from __future__ import annotations

import pytest
from workflow_builders import CODE, a_workflow

from servioticy.domain.workflows.costs import MILLION, Work, amounts, cost, estimate
from servioticy.settings.outward import Usage

PRICES = Usage(
    per_million_atoms=1.0,
    per_processor_hour=3.6,
    per_gibibyte_hour=0.36,
    per_million_deliveries=5.0,
    per_million_updates=7.0,
)
HOUR_OF_A_GIBIBYTE = 1_024 * 3_600_000


def test_a_step_costs_by_atoms_processor_and_memory() -> None:
    work = Work(MILLION, 0, 1_000_000, HOUR_OF_A_GIBIBYTE)

    assert cost(PRICES, work) == pytest.approx(1.0 + 3.6 / 3_600 + 0.36)
    assert cost(Usage(), Work()) == 0
    assert amounts(PRICES, work) == {
        "processorSeconds": 1.0,
        "gibibyteHours": 1.0,
        "cost": cost(PRICES, work),
    }


def test_without_measurements_it_is_said_what_is_assumed() -> None:
    """A millisecond for an atom, and one atom of one: 1,000 seconds of a million."""
    found = estimate(a_workflow("clean"), {0: 1_024}, {}, PRICES)

    step = found["steps"]["clean"]
    assert (step["atoms"], step["measured"]) == (MILLION, False)
    assert step["processorSeconds"] == pytest.approx(1_000)
    assert step["gibibyteHours"] == pytest.approx(1_000 / 3_600)
    assert step["cost"] == pytest.approx(1.0 + 1.0 + 0.1)
    assert found["steps"]["sink"]["cost"] == pytest.approx(1.0)
    assert found["cost"] == pytest.approx(3.1)
    assert found["assumed"] == {"millisecondsPerAtom": 1.0}


def test_half_of_the_memory_costs_half_as_much() -> None:
    """As long as it takes the same time, which is what the paper's Table I is about."""
    workflow = a_workflow("clean")
    costs = [
        estimate(workflow, {0: mib}, {}, PRICES)["steps"]["clean"]["gibibyteHours"]
        for mib in (256, 128)
    ]

    assert costs[0] == pytest.approx(2 * costs[1])


def test_what_was_measured_is_taken_for_what_comes() -> None:
    """Of two links each gets half of what was made along both; three come of one."""
    workflow = a_workflow(
        procedures={each: {"code": CODE} for each in ("split", "a", "b")},
        links=[["source", "split"], ["split", "a"], ["split", "b"], ["a", "sink"], ["b", "sink"]],
        sink={"callback": {"url": "https://example.org/"}},
    )
    measured = {"split": Work(10, 60, 20_000, 640), "a": Work(30, 0, 0, 0)}

    found = estimate(workflow, dict.fromkeys(range(3), 64), measured, PRICES)["steps"]

    assert {name: (each["atoms"], each["measured"]) for name, each in found.items()} == {
        "split": (MILLION, True),
        "a": (3 * MILLION, True),
        "b": (3 * MILLION, False),
        "sink": (3 * MILLION, False),
    }
    assert found["split"]["processorSeconds"] == pytest.approx(2_000)
    assert found["sink"]["cost"] == pytest.approx(3 * (1.0 + 5.0))
