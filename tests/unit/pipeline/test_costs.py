"""Who pays for a batch, and what trees took."""

from __future__ import annotations

import pytest

from pipeline.sharing.costs import (
    A_BATCH,
    BYTES_A_COMPUTATION,
    ELSEWHERE_SECONDS,
    Costs,
    Trees,
)
from sandbox import ProcessorSeconds


def test_who_waits_for_a_process_is_not_charged_for_that() -> None:
    costs = Costs({1: 1, 2: 1})
    costs.ran(1, 1, 3.0, ProcessorSeconds(0.001, 0.002), 0.0)
    costs.ran(2, 1, 1.0, ProcessorSeconds(0.5), 0.0)

    assert costs.seconds(4.5) == {1: pytest.approx(0.253), 2: pytest.approx(0.75)}


def test_what_this_thread_does_with_the_answers_is_the_tenants() -> None:
    """Else others would pay for half of what thousands of composites take."""
    costs = Costs({1: 1, 2: 1})
    costs.ran(2, 1, 0.5, ProcessorSeconds(0.1), 0.2)

    assert costs.seconds(0.5) == {1: 0.0, 2: pytest.approx(0.3)}
    assert costs.processor == pytest.approx(0.3)
    assert costs.ours == 0.2


def test_trees_that_took_too_long_are_told() -> None:
    costs = Costs(dict.fromkeys(range(1, 4), 1))
    costs.ran(2, 1, 0.06, ProcessorSeconds(0.06, overlong=0.06), 0.0)
    costs.ran(3, 1, 0.06, ProcessorSeconds(0.06), 0.0)

    trees = costs.trees(0.24, 0.0)
    assert {tenant for tenant, each in trees.items() if each.overlong} == {2}
    assert {tenant for tenant, each in trees.items() if each.ran} == {2, 3}


def test_programs_are_made_ready_at_the_tenants_cost() -> None:
    costs = Costs({1: 1})
    costs.ran(1, 1, 0.3, ProcessorSeconds(0.1, 0.02, 0.1), 0.0)

    assert costs.seconds(0.3) == {1: pytest.approx(0.22)}
    assert costs.trees(0.3, 0.0)[1] == Trees(1, 0.3, pytest.approx(0.1), 0.1, True)
    assert costs.processor == pytest.approx(0.1)


def test_who_is_refused_pays_for_what_is_told_of_that() -> None:
    costs = Costs({1: 1, 2: 1})
    costs.refuse(2, 98)

    assert costs.seconds(1.0) == pytest.approx({1: 0.01, 2: 0.99})
    rows = 98 * (1.2 / (98 + 2 + A_BATCH) + ELSEWHERE_SECONDS)
    assert costs.trees(1.0, 1.2)[2].processor == pytest.approx(rows)


def test_a_large_update_is_more_than_a_small_one() -> None:
    costs = Costs({1: 1, 2: 10}, {1: 989 * BYTES_A_COMPUTATION, 2: 0})

    assert costs.seconds(1.0) == pytest.approx({1: 0.99, 2: 0.01})


def test_rows_are_not_for_nothing() -> None:
    """Quick scripts of many composites hold up others as slow ones do."""
    costs = Costs({1: 1})
    costs.ran(1, 1, 0.001, ProcessorSeconds(0.001), 0.0)
    costs.count(1, 800)

    rows = 800 * (0.1 / (800 + 1 + A_BATCH) + ELSEWHERE_SECONDS)
    assert costs.trees(0.1, 0.1)[1].processor == pytest.approx(0.001 + rows)


def test_bytes_are_not_for_nothing() -> None:
    """A few composites of the largest documents hold up others as many small ones do."""
    small, large = Costs({1: 1}), Costs({1: 1})
    for costs, computations, size in ((small, 801, 0), (large, 1, 800 * BYTES_A_COMPUTATION)):
        costs.ran(1, 1, 0.001, ProcessorSeconds(0.001), 0.0)
        costs.count(1, computations, size)

    assert small.trees(0.1, 0.1) == large.trees(0.1, 0.1)
    assert small.seconds(0.1) == large.seconds(0.1)


def test_a_batch_of_one_is_not_slow_for_what_each_batch_costs() -> None:
    costs = Costs({1: 1})
    costs.ran(1, 1, 0.001, ProcessorSeconds(0.0005), 0.0)
    costs.count(1, 1)

    assert costs.trees(0.02, 0.02)[1].processor < 0.002


def test_the_rest_of_a_batch_goes_by_work() -> None:
    """A quick update beside a fan-out is believed to be quick."""
    costs = Costs({1: 1, 2: 1})
    costs.ran(2, 1, 0.0, ProcessorSeconds(), 0.0)
    costs.count(2, 998)

    grown = costs.trees(1.0, 0.0)
    assert grown[1].seconds == pytest.approx(0.001)
    assert grown[2].seconds == pytest.approx(0.999)
    assert costs.seconds(1.0) == {1: pytest.approx(0.001), 2: pytest.approx(0.999)}


def test_an_empty_batch_costs_nobody_anything() -> None:
    costs = Costs({})
    assert not costs.seconds(1.0)
    assert not costs.trees(1.0, 1.0)
