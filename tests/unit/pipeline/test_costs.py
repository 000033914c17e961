"""Who pays for a batch, whose trees took what, and what was computed in those of others."""

from __future__ import annotations

import pytest

from pipeline.sharing.costs import (
    A_BATCH,
    BYTES_A_COMPUTATION,
    ELSEWHERE_SECONDS,
    Costs,
    Foreign,
    Trees,
)
from sandbox import ProcessorSeconds


def test_who_waits_for_a_process_is_not_charged_for_that() -> None:
    costs = Costs({1: 1, 2: 1})
    costs.ran(1, {1: {0}}, 3.0, ProcessorSeconds(0.001, 0.002), 0.0)
    costs.ran(2, {2: {1}}, 1.0, ProcessorSeconds(0.5), 0.0)

    assert costs.by_runner(4.5) == {1: pytest.approx(0.253), 2: pytest.approx(0.75)}


def test_what_this_thread_does_with_the_answers_is_the_runners() -> None:
    """Else whoever has thousands of composites would pay for half of what they take."""
    costs = Costs({1: 1})
    costs.ran(2, {1: {0}}, 0.5, ProcessorSeconds(0.1), 0.2)

    assert costs.by_runner(0.5) == {1: 0.0, 2: pytest.approx(0.3)}
    assert costs.foreign(0.0) == {(2, 1): Foreign(pytest.approx(0.3), 1)}
    assert costs.processor == costs.of_strangers == pytest.approx(0.3)
    assert costs.ours == 0.2


def test_trees_that_grow_together_share_what_that_takes() -> None:
    """But what is believed of a provider: which of them took it, nobody knows."""
    costs = Costs({1: 1, 2: 2})
    costs.ran(2, {1: {0}, 2: {1, 2}}, 0.6, ProcessorSeconds(0.3, 0.03), 0.0)

    starts = pytest.approx(0.01)
    assert costs.foreign(0.0) == {(2, 1): Foreign(pytest.approx(0.1), 1, starts)}
    grown = costs.by_owner(0.6, 0.0)
    assert grown[1] == Trees(1, pytest.approx(0.2), pytest.approx(0.3), 0.0, {2})
    assert grown[2] == Trees(2, pytest.approx(0.4), pytest.approx(0.2), 0.0, {2})
    assert sum(costs.by_runner(0.6).values()) == pytest.approx(0.33)


def test_many_providers_together_are_believed_to_have_caused_it_once() -> None:
    """Who reads sixty streams makes none of sixty providers slow by what all of it takes."""
    costs = Costs(dict.fromkeys(range(60), 1))
    costs.ran(99, {each: {each} for each in range(60)}, 0.06, ProcessorSeconds(0.06), 0.0)

    took = [each.processor for each in costs.by_owner(0.06, 0.0).values()]
    assert took == pytest.approx([0.001] * 60)


def test_a_tree_that_took_too_long_is_somebodys() -> None:
    """Whose it is among those of several providers nobody knows; but whose scripts they are."""
    overlong = ProcessorSeconds(0.06, overlong=0.06)
    costs = Costs(dict.fromkeys(range(1, 8), 1))
    costs.ran(2, {1: {1}, 2: {2}}, 0.06, overlong, 0.0)
    costs.ran(3, {4: {4}}, 0.06, overlong, 0.0)
    costs.ran(5, {6: {6}, 7: {7}}, 0.06, overlong, 0.0)
    costs.ran(5, {1: {1}}, 0.06, ProcessorSeconds(0.06), 0.0)

    trees = costs.by_owner(0.24, 0.0)
    assert {owner for owner, each in trees.items() if each.overlong} == {2, 4}
    foreign = costs.foreign(0.0)
    assert {pair for pair, each in foreign.items() if each.overlong} == {
        (2, 1),
        (3, 4),
        (5, 6),
        (5, 7),
    }


def test_programs_are_made_ready_at_the_runners_cost() -> None:
    costs = Costs({1: 1})
    costs.ran(2, {1: {0}}, 0.3, ProcessorSeconds(0.1, 0.02, 0.1), 0.0)

    assert costs.by_runner(0.3) == {1: 0.0, 2: pytest.approx(0.22)}
    assert costs.foreign(0.0) == {(2, 1): Foreign(pytest.approx(0.1), 1, pytest.approx(0.12))}
    assert costs.by_owner(0.3, 0.0)[1][2:4] == pytest.approx((0.1, 0.1))
    assert costs.processor == pytest.approx(0.1)


def test_who_is_refused_pays_for_what_is_told_of_that() -> None:
    """The provider's update holds up others by it, but it is none of the strangers' time."""
    costs = Costs({1: 1})
    costs.refuse(2, 1, 99)

    assert costs.by_runner(1.0) == pytest.approx({1: 0.01, 2: 0.99})
    assert costs.foreign(1.0) == {}
    rows = 99 * (1.2 / (99 + 1 + A_BATCH) + ELSEWHERE_SECONDS)
    assert costs.by_owner(1.0, 1.2)[1].processor == pytest.approx(rows)


def test_a_large_update_is_more_than_a_small_one() -> None:
    costs = Costs({1: 1, 2: 10}, {1: 989 * BYTES_A_COMPUTATION, 2: 0})

    assert costs.by_runner(1.0) == pytest.approx({1: 0.99, 2: 0.01})


def test_a_tree_counts_once_however_often_it_is_grown_on() -> None:
    costs = Costs({1: 1})
    for _ in range(50):
        costs.ran(2, {1: {0}}, 0.01, ProcessorSeconds(0.01), 0.0)

    assert costs.foreign(0.0) == {(2, 1): Foreign(pytest.approx(0.5), 1)}


def test_rows_are_not_for_nothing() -> None:
    """Quick scripts of many composites hold up others as slow ones do."""
    costs = Costs({1: 1})
    costs.ran(2, {1: {0}}, 0.001, ProcessorSeconds(0.001), 0.0)
    costs.count(2, {1: {0}}, 800)

    rows = 800 * (0.1 / (800 + 1 + A_BATCH) + ELSEWHERE_SECONDS)
    assert costs.foreign(0.1)[2, 1].seconds == pytest.approx(0.001 + rows)
    assert costs.by_owner(0.1, 0.1)[1].processor == pytest.approx(0.001 + rows)


def test_bytes_are_not_for_nothing() -> None:
    """A few composites of the largest documents hold up others as many small ones do."""
    small, large = Costs({1: 1}), Costs({1: 1})
    for costs, computations, size in ((small, 801, 0), (large, 1, 800 * BYTES_A_COMPUTATION)):
        costs.ran(2, {1: {0}}, 0.001, ProcessorSeconds(0.001), 0.0)
        costs.count(2, {1: {0}}, computations, size)

    assert small.foreign(0.1) == large.foreign(0.1)
    assert small.by_owner(0.1, 0.1) == large.by_owner(0.1, 0.1)
    assert small.by_runner(0.1) == large.by_runner(0.1)


def test_a_batch_of_one_is_not_slow_for_what_each_batch_costs() -> None:
    costs = Costs({1: 1})
    costs.ran(1, {1: {0}}, 0.001, ProcessorSeconds(0.0005), 0.0)
    costs.count(1, {1: {0}}, 1)

    assert costs.by_owner(0.02, 0.02)[1].processor < 0.002


def test_the_rest_of_a_batch_goes_by_work() -> None:
    """A quick update beside a fan-out is believed to be quick."""
    costs = Costs({1: 1, 2: 1})
    costs.ran(2, {2: {1}}, 0.0, ProcessorSeconds(), 0.0)
    costs.count(2, {2: {1}}, 998)

    grown = costs.by_owner(1.0, 0.0)
    assert grown[1].seconds == pytest.approx(0.001)
    assert grown[2].seconds == pytest.approx(0.999)
    assert costs.by_runner(1.0) == {1: pytest.approx(0.001), 2: pytest.approx(0.999)}


def test_an_empty_batch_costs_nobody_anything() -> None:
    costs = Costs({})
    assert not costs.by_runner(1.0)
    assert not costs.by_owner(1.0, 1.0)
    assert not costs.foreign(1.0)
