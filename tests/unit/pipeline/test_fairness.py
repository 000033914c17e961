"""What is learnt of a batch: who pays, and whose trees are slow."""

from __future__ import annotations

from pipeline.sharing.costs import Costs
from pipeline.sharing.fairness import Fairness
from pipeline.sharing.pace import SLOW_SECONDS
from pipeline.sharing.shares import Shares
from sandbox import ProcessorSeconds


def a_batch(*runners: int) -> Costs:
    """Of two tenants with a slow tree each, of which these have been grown."""
    costs = Costs({1: 1, 2: 1})
    for each in runners:
        slow = ProcessorSeconds(1.5 * SLOW_SECONDS)
        costs.ran(each, 1, 1.5 * SLOW_SECONDS, slow, 0.0)
    return costs


def test_of_a_batch_that_was_given_up_nothing_is_learnt_of_those_whose_turn_had_not_come() -> None:
    """Else they were quick: their trees would have cost nothing."""
    fairness = Fairness(Shares(0.5))
    fairness.note(a_batch(1), 0.1, 0.01, whole=False)
    assert fairness.pace.knows(1)
    assert not fairness.pace.knows(2)

    fairness.note(a_batch(1, 2), 0.1, 0.01)
    for _ in range(20):
        fairness.note(a_batch(1), 0.1, 0.01, whole=False)
    assert fairness.pace.is_slow(2)


def test_but_all_of_it_is_charged() -> None:
    fairness = Fairness(Shares(0.5))
    before = fairness.shares.balance(2)
    fairness.note(a_batch(1), 10.0, 0.01, whole=False)
    assert fairness.shares.balance(2) < before - 1.0
