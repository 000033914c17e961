"""What strangers take in somebody's trees: together no more than a share, and each its part."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline.sharing.strangers import (
    FORGOTTEN_SECONDS,
    HORIZON_SECONDS,
    LIGHT_SECONDS,
    LIGHT_TREE_SECONDS,
    LOOK_SECONDS,
    MAX_ACCOUNTS,
    Strangers,
)

from pipeline.sharing.costs import Foreign

OWNER = 99
SHARE = 0.5
BURST = SHARE * HORIZON_SECONDS


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def run(
    costs: dict[int, float], rate: float = 6.0, seconds: float = 60.0
) -> tuple[dict[int, float], float]:
    """What each tenant takes a second, of updates at this rate that each cost it so much."""
    clock, taken = Clock(), defaultdict[int, float](float)
    strangers = Strangers(SHARE, clock)
    for _ in range(int(rate * seconds)):
        woken = costs.keys() - {runner for runner, _owner in strangers.over()}
        strangers.charge({(each, OWNER): Foreign(costs[each], 1) for each in woken})
        for each in woken:
            taken[each] += costs[each] / seconds
        clock.now += 1 / rate
    return taken, sum(taken.values())


def test_those_who_stay_below_the_share_together_are_not_refused() -> None:
    taken, _all = run(dict.fromkeys(range(4), 0.02))
    assert taken == pytest.approx(dict.fromkeys(range(4), 0.12))


def test_together_they_take_no_more_than_the_share() -> None:
    """Each of them may be below a share of its own."""
    taken, together = run(dict.fromkeys(range(8), 0.05))
    assert together <= SHARE * 1.2 + BURST / 60
    assert max(taken.values()) <= min(taken.values()) * 1.2


def test_those_who_take_little_are_not_refused_for_those_who_take_much() -> None:
    taken, together = run({1: 0.1, 2: 0.1, 3: 0.005, 4: 0.005})
    assert taken[3] == taken[4] == pytest.approx(0.03)
    assert together <= SHARE * 1.2 + BURST / 60


def test_many_whose_scripts_are_light_are_not_refused() -> None:
    """A backlog has thousands of updates a second; nobody waits for one of these."""
    costs = dict.fromkeys(range(20), LIGHT_TREE_SECONDS / 21)
    taken, _all = run(costs, rate=500.0, seconds=5.0)
    assert taken == pytest.approx({each: 500 * cost for each, cost in costs.items()})


def test_so_many_that_each_tree_waits_for_them_are() -> None:
    costs = dict.fromkeys(range(100), LIGHT_SECONDS * 0.9)
    _taken, together = run(costs, rate=50.0, seconds=20.0)
    assert together <= SHARE * 1.2 + BURST / 20


def test_light_ones_leave_the_others_their_parts() -> None:
    """They are not refused, so there is nothing to be shared out with them."""
    clock = Clock()
    strangers = Strangers(SHARE, clock)
    light = {(each, OWNER): Foreign(0.4, 1000) for each in range(5)}
    strangers.charge({**light, (7, 8): Foreign(0.2, 10)})
    assert strangers.over() == set()
    strangers.charge({(9, 8): Foreign(2 * BURST, 10)})
    assert strangers.over() == set(), "it has just been looked"
    clock.now += LOOK_SECONDS
    assert strangers.over() == {(9, 8)}


def test_whose_scripts_are_light_is_asked_of_each_provider() -> None:
    """Thousands of a friend's trees that cost nothing make nobody light in another's."""
    strangers = Strangers(SHARE, Clock())
    strangers.charge({(1, 2): Foreign(2 * BURST, 10), (1, 3): Foreign(0.1, 100_000)})

    assert strangers.over() == {(1, 2)}
    assert strangers.is_light(1, 3)
    assert not strangers.is_light(1, 2)
    assert not strangers.is_light(1, 4), "whom nobody has met"


def test_what_is_heavy_now_and_then_is_not_light() -> None:
    """Nearly all of these updates cost nothing; on the average they are light."""
    clock, taken = Clock(), 0.0
    strangers = Strangers(SHARE, clock)
    for number in range(6_000):
        heavy = number % 100 == 0
        refused = {runner for runner, _owner in strangers.over()}
        for each in {1, 2, 3, 4} - refused:
            taken += 0.05 * heavy
            strangers.charge({(each, OWNER): Foreign(0.05 * heavy, 1)})
        clock.now += 1 / 600
    assert taken / 10 <= SHARE * 1.2 + BURST / 10


def test_nor_is_one_that_took_too_long_among_many_of_a_batch() -> None:
    strangers = Strangers(SHARE, Clock())
    strangers.charge({(1, OWNER): Foreign(2 * BURST, 10_000), (2, OWNER): Foreign(0.1, 10_000)})
    assert strangers.over() == set()
    strangers = Strangers(SHARE, Clock())
    strangers.charge({(1, OWNER): Foreign(2 * BURST, 10_000, overlong=True)})
    assert strangers.over() == {(1, OWNER)}


def test_after_a_pause_a_start_is_a_first_one_again() -> None:
    clock = Clock()
    strangers = Strangers(SHARE, clock)
    begun = {(each, OWNER): Foreign(LIGHT_SECONDS / 2, 1, BURST) for each in range(9)}
    strangers.charge(begun)
    clock.now += FORGOTTEN_SECONDS + 1
    strangers.charge(begun)
    assert strangers.over() == set()


def test_the_start_of_a_process_counts_where_it_was_there_before() -> None:
    """All of many start when an update comes for the first time; nobody is refused for that."""
    strangers = Strangers(SHARE, Clock())
    begun = {(each, OWNER): Foreign(LIGHT_SECONDS / 2, 1, BURST) for each in range(9)}
    strangers.charge(begun)
    assert strangers.over() == set()
    assert strangers.is_light(1, OWNER)

    strangers.charge(begun)
    assert strangers.over() == begun.keys()


def test_one_that_has_stopped_is_forgotten() -> None:
    clock = Clock()
    strangers = Strangers(SHARE, clock)
    strangers.charge({(1, OWNER): Foreign(2 * BURST, 1)})
    assert strangers.over() == {(1, OWNER)}
    clock.now += HORIZON_SECONDS
    assert strangers.over() == set()
    clock.now += FORGOTTEN_SECONDS
    strangers.charge({(2, OWNER): Foreign(0.0, 1)})
    assert strangers._accounts.keys() == {(2, OWNER)}


def test_accounts_are_bounded() -> None:
    strangers = Strangers(SHARE, Clock())
    strangers.charge({(each, OWNER): Foreign(1.0, 1) for each in range(MAX_ACCOUNTS + 5)})
    assert len(strangers.over()) == MAX_ACCOUNTS


@given(st.dictionaries(st.integers(0, 9), st.floats(0.0, 3.0)))
def test_what_all_are_cut_to_is_what_there_is(used: dict[int, float]) -> None:
    """Cut to the least that one of them has who is refused, the others fill the share."""
    strangers = Strangers(SHARE, Clock())
    strangers.charge({(each, OWNER): Foreign(seconds, 1) for each, seconds in used.items()})
    over = {runner for runner, _owner in strangers.over()}

    assert bool(over) == (sum(used.values()) > BURST)
    if over:
        least = min(used[each] for each in over)
        assert all(used[each] <= least for each in used.keys() - over)
        assert sum(min(each, least) for each in used.values()) >= BURST - 1e-9
        rest = [each for tenant, each in used.items() if tenant not in over]
        most = max(rest, default=0.0)
        assert sum(rest) + len(over) * most <= BURST + 1e-9
