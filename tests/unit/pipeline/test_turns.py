"""Whoever waits has a turn, however quick others are and however much they want."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pipeline.sharing.costs import Trees
from pipeline.sharing.pace import Pace
from pipeline.sharing.shares import BURST_SECONDS, Shares
from pipeline.sharing.turns import MAX_QUICK_TURNS, Turns

SLOW = 99


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@given(quick=st.integers(1, 8), share=st.sampled_from([0.25, 0.5]), slice_=st.floats(0.001, 0.05))
def test_who_is_slow_has_its_turns_beside_quick_ones_that_want_everything(
    quick: int, share: float, slice_: float
) -> None:
    clock, pace = Clock(), Pace()
    shares = Shares(share, clock)
    waiting = [*range(quick), SLOW]
    pace.learn(dict.fromkeys(waiting, Trees(1)) | {SLOW: Trees(1, 0.1, 0.1)})
    shares.saw(waiting)
    turns, taken = Turns(shares, pace), Counter[int]()
    for each in waiting:
        shares.charge({each: 0.0})

    for _ in range(40 * len(waiting)):
        shares.saw(waiting)
        tenant = turns.next(waiting)
        if tenant not in shares.over():
            turns.took(tenant)
            taken[tenant] += 1
            shares.charge({tenant: slice_})
        clock.now += slice_

    assert set(taken) == set(waiting)
    assert taken[SLOW] >= 5


def test_a_quick_one_does_not_wait_for_a_crowd() -> None:
    clock, pace = Clock(), Pace()
    shares = Shares(0.5, clock)
    crowd = list(range(1, 500))
    pace.learn({0: Trees(1)} | dict.fromkeys(crowd, Trees(1, 0.1, 0.1)))
    shares.charge({0: BURST_SECONDS / 2})
    turns = Turns(shares, pace)

    first = []
    for _ in range(2):
        tenant = turns.next([*crowd, 0])
        turns.took(tenant)
        first.append(tenant)

    assert 0 in first


def test_several_quick_ones_come_before_one_that_is_slow() -> None:
    """Each once: to wait for one slow piece is enough. But not for however many."""
    pace, crowd = Pace(), range(1, 3 * MAX_QUICK_TURNS)
    pace.learn(dict.fromkeys(crowd, Trees(1)) | {SLOW: Trees(1, 0.1, 0.1)})
    for some, until_slow in (([1, 2, 3], 3), (crowd, MAX_QUICK_TURNS)):
        turns, order = Turns(Shares(0.5, Clock()), pace), []
        for _ in range(2 * (until_slow + 1)):
            tenant = turns.next([SLOW, *some])
            turns.took(tenant)
            order.append(tenant)
        first, second = order[: until_slow + 1], order[until_slow + 1 :]
        assert first[-1] == SLOW
        assert len(set(first)) == until_slow + 1
        assert len(set(second)) == until_slow + 1


def test_however_many_come_who_waits_has_its_turn() -> None:
    """A slow one that has used a little, among ever new ones that have used nothing."""
    clock, pace = Clock(), Pace()
    shares = Shares(0.5, clock)
    shares.charge({SLOW: BURST_SECONDS / 2})
    turns, crowd = Turns(shares, pace), list(range(100, 150))

    waited = 0
    for newcomer in range(150, 400):
        tenant = turns.next([*crowd, SLOW])
        turns.took(tenant)
        if tenant == SLOW:
            waited = 0
            shares.charge({SLOW: 0.001})
        else:
            crowd.remove(tenant)
            crowd.append(newcomer)
            waited += 1
        assert waited <= len(crowd)
