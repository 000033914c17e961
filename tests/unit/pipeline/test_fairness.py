"""Who pays for a batch, and what is learnt of what updates cost."""

from __future__ import annotations

import pytest

from pipeline.limits import NO_LIMITS
from pipeline.sharing.fairness import A_BATCH, Fairness
from pipeline.sharing.shares import UNKNOWN_SECONDS, Shares
from pipeline.sharing.spending import BYTES_A_COMPUTATION, Spending
from sandbox import ProcessorSeconds


def a_piece(updates: int = 1, size: int = 0) -> Spending:
    return Spending(NO_LIMITS, updates, size)


def noted(seconds: float, *pieces: Spending) -> dict[int, float]:
    """What each of these is charged, by its number from one on."""
    return Fairness(Shares(1.0)).note(enumerate(pieces, 1), seconds, seconds)


def test_who_waits_for_a_process_is_not_charged_for_that() -> None:
    one, two = a_piece(), a_piece()
    one.ran(3.0, ProcessorSeconds(0.001, 0.002), 0.0)
    two.ran(1.0, ProcessorSeconds(0.5), 0.0)

    assert noted(0.5, one, two) == {1: pytest.approx(0.253), 2: pytest.approx(0.75)}


def test_what_is_done_here_with_the_answers_is_the_tenants() -> None:
    """Else others would pay for half of what thousands of composites take."""
    one, two = a_piece(), a_piece()
    two.ran(0.5, ProcessorSeconds(0.1), 0.2)

    assert noted(0.0, one, two) == {1: 0.0, 2: pytest.approx(0.3)}
    assert two.processor == pytest.approx(0.3)


def test_programs_are_made_ready_at_the_tenants_cost() -> None:
    """Who is charged for that is not believed to be slow."""
    piece = a_piece()
    piece.ran(0.3, ProcessorSeconds(0.1, 0.02, 0.1), 0.0)
    fairness = Fairness(Shares(1.0))

    assert fairness.note([(1, piece)], 0.0, 0.0) == {1: pytest.approx(0.22)}
    assert fairness.shares.each(1) == pytest.approx(0.1)


def test_who_is_refused_pays_for_what_is_told_of_that() -> None:
    one, two = a_piece(), a_piece()
    two.refuse(98)

    assert noted(1.0, one, two) == pytest.approx({1: 0.01, 2: 0.99})


def test_a_large_update_is_more_than_a_small_one() -> None:
    assert noted(1.0, a_piece(1, 989 * BYTES_A_COMPUTATION), a_piece(10)) == pytest.approx(
        {1: 0.99, 2: 0.01}
    )


def test_bytes_are_not_for_nothing() -> None:
    """A few composites of the largest documents hold up others as many small ones do."""
    small, large = a_piece(), a_piece()
    small.count(801)
    large.count(1, 800 * BYTES_A_COMPUTATION)

    assert noted(0.1, small) == noted(0.1, large)


def test_a_batch_of_one_is_not_slow_for_what_each_batch_costs() -> None:
    fairness = Fairness(Shares(1.0))
    piece = a_piece()
    piece.ran(0.001, ProcessorSeconds(0.0005), 0.0)
    piece.count(1)
    fairness.note([(1, piece)], 0.9, 0.02)

    assert fairness.shares.each(1) == pytest.approx(0.0005 + 0.02 * 2 / (2 + A_BATCH))


def test_the_rest_of_a_batch_goes_by_work() -> None:
    """A quick update beside a fan-out is believed to be quick."""
    one, two = a_piece(), a_piece()
    two.count(998)
    fairness = Fairness(Shares(1.0))
    charged = fairness.note([(1, one), (2, two)], 1.0, 1.0)

    assert charged == pytest.approx({1: 0.001, 2: 0.999})
    assert fairness.shares.each(1) < 0.001


def test_an_empty_batch_costs_nobody_anything() -> None:
    assert not noted(1.0)


def test_what_is_dearer_than_believed_is_believed_at_once() -> None:
    shares = Shares(1.0)
    assert shares.each(1) == UNKNOWN_SECONDS
    shares.learn(1, 0.0001)
    assert shares.each(1) == 0.0001
    shares.learn(1, 0.1)
    assert shares.each(1) == 0.1
    shares.learn(1, 0.0)
    assert 0.05 < shares.each(1) < 0.1
