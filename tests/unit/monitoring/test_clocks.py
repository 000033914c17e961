"""What steps say of the clocks of their machines."""

from __future__ import annotations

import pytest

from monitoring.analysis import clocks
from monitoring.analysis.analysing import analysed
from monitoring.analysis.clocks import Apart
from monitoring.analysis.steps import Read, Step


def step(machine: str, start: int, own: str = "", parent: str = "", sequence: str = "s") -> Step:
    return Step(f"on {machine}", f"{machine}/program/1", start, start + 1, sequence, own, parent)


def test_steps_of_one_machine_say_nothing_of_clocks() -> None:
    found = analysed(Read([step("a", 0, "1"), step("a", 5, "2", "1")], 0))

    assert found.clocks == []
    assert [each.node for each in found.latency] == [""]


def test_a_step_bounds_how_far_its_clock_is_ahead_of_its_parents() -> None:
    """It cannot have begun before that did: the pair that is closest says most."""
    steps = [
        step("a", 0, "1"),
        step("b", 9, "2", "1"),
        step("a", 20, "3"),
        step("b", 24, "4", "3"),
    ]

    assert clocks.apart(steps) == [Apart("a", "b", None, 4)]


@pytest.mark.parametrize("ahead", [-1_000, 0, 1_000])
def test_pairs_both_ways_bound_it_from_both_sides(ahead: int) -> None:
    """However wrong the clocks are, what they differ by lies between."""
    steps = [
        step("a", 0, "1"),
        step("b", 3 + ahead, "2", "1"),
        step("a", 10, "3", "2"),
        step("b", 12 + ahead, "4", "3"),
    ]
    (found,) = clocks.apart(steps)

    assert (found.least, found.most) == (ahead - 7, ahead + 2)


def test_each_latency_says_whose_clocks_it_stands_on() -> None:
    steps = [step("a", 0), step("a", 10), step("b", 20)]
    found = analysed(Read(steps, 0))

    assert [(each.what, each.node) for each in found.latency] == [
        ("on a to on a", ""),
        ("on a to on b", "a to b"),
    ]
    assert found.clocks == [Apart("a", "b", None, None)]


def test_machines_that_share_no_sequence_are_not_compared() -> None:
    assert clocks.apart([step("a", 0), step("b", 5, sequence="t")]) == []


@pytest.mark.parametrize(
    ("least", "most", "told"),
    [
        (None, None, "clocks unknown"),
        (-2e6, 1e6, "clocks -2.000 to +1.000"),
        (None, 1e6, "clocks at most +1.000"),
        (0.0, None, "clocks at least +0.000"),
    ],
)
def test_it_is_told_in_milliseconds(least: float | None, most: float | None, told: str) -> None:
    assert Apart("a", "b", least, most).told() == told
