"""Who is over a share of a partition's time, and what batches are cut by."""

from __future__ import annotations

from engine_builders import logged

from pipeline.batching.forming import SLOW_PART_SECONDS, FormingBatch
from pipeline.sharing.pace import NEW_SECONDS, SLOW_SECONDS, UNKNOWN_SECONDS, Pace
from pipeline.sharing.shares import ACTIVE_SECONDS, BURST_SECONDS, MAX_ACCOUNTS, Shares


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def shares_of(clock: Clock) -> Shares:
    return Shares(0.5, clock)


def test_time_that_nobody_else_wants_is_free() -> None:
    clock = Clock()
    shares = shares_of(clock)
    shares.saw([1])
    shares.charge({1: 60.0})

    assert shares.over() == set()


def test_a_tenant_over_its_share_is_so_until_its_time_has_come() -> None:
    """Half a second a second: one second too much takes two."""
    clock = Clock()
    shares = shares_of(clock)
    shares.saw([1, 2])
    shares.charge({1: BURST_SECONDS + 1.0, 2: 0.01})

    assert shares.over() == {1}
    clock.now += 1.99
    assert shares.over() == {1}
    clock.now += 0.02
    assert shares.over() == set()


def test_a_burst_is_within_the_share() -> None:
    shares = shares_of(Clock())
    shares.saw([1, 2])
    shares.charge({1: BURST_SECONDS})

    assert shares.over() == set()


def test_who_has_gone_does_not_hold_the_others() -> None:
    clock = Clock()
    shares = shares_of(clock)
    shares.saw([1, 2])
    clock.now += ACTIVE_SECONDS + 0.1
    shares.saw([1])
    shares.charge({1: 60.0})

    assert not shares.contested
    assert shares.over() == set()
    shares.saw([2])
    assert shares.over() == {1}


def test_accounts_are_bounded() -> None:
    shares = shares_of(Clock())
    tenants = range(MAX_ACCOUNTS + 5)
    shares.saw(tenants)
    shares.charge(dict.fromkeys(tenants, 9.0))

    assert len(shares.over()) == MAX_ACCOUNTS


def test_what_is_slower_than_believed_is_believed_at_once() -> None:
    pace = Pace()
    assert pace.of(1) == UNKNOWN_SECONDS

    pace.learn({1: 10}, {1: 0.01}, {})
    assert pace.of(1) == 0.001
    pace.learn({1: 10}, {1: 1.0}, {})
    assert pace.of(1) == 0.1
    pace.learn({1: 10}, {1: 0.0}, {})
    assert 0.05 < pace.of(1) < 0.1


def test_a_batch_takes_few_slow_updates_and_all_quick_ones() -> None:
    """Of many tenants, each with a little: those whose updates are quick wait for none of them."""
    pace = Pace()
    pace.learn({1: 1, 2: 1}, {1: 1.0}, {1: SLOW_SECONDS / 2, 2: SLOW_PART_SECONDS - NEW_SECONDS})
    batch = FormingBatch(0, pace)
    assert batch.has_room_for(3), "nobody has met it, and nobody else is slow"
    batch.add(logged(0, 1, tenant=3), 1)
    assert batch.has_room_for(2)
    batch.add(logged(1, 1, tenant=2), 2)

    assert batch.has_room_for(3), "its process is there by then"
    assert not batch.has_room_for(4)
    assert not batch.has_room_for(2)
    assert batch.has_room_for(1)


def test_the_first_slow_update_has_room_however_slow_it_is() -> None:
    pace = Pace()
    pace.learn({1: 1}, {}, {1: 10 * SLOW_PART_SECONDS})

    assert FormingBatch(0, pace).has_room_for(1)
