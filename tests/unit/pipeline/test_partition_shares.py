"""Who is over a share of a partition's time, and what batches are cut by."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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


def test_whose_updates_come_alone_has_nobody_to_wait_for() -> None:
    """Its trees wake another's composites; those may be over a share, and it is not."""
    shares = shares_of(Clock())
    shares.saw([1])
    shares.charge({1: 60.0, 2: 60.0})

    assert not shares.contested
    assert shares.over() == {2}
    shares.saw([2])
    assert shares.over() == {1, 2}


def test_where_no_updates_come_nobody_is_over_a_share() -> None:
    clock = Clock()
    shares = shares_of(clock)
    shares.saw([1])
    shares.charge({2: 1.0})
    assert shares.over() == {2}
    clock.now += ACTIVE_SECONDS + 0.1
    shares.charge({2: 1.0})

    assert shares.over() == set()


def test_a_tenant_over_its_share_is_so_until_its_time_has_come() -> None:
    """Half a second a second: one second too much takes two."""
    clock = Clock()
    shares = shares_of(clock)
    shares.saw([1, 2])
    shares.charge({1: BURST_SECONDS + 1.0, 2: 0.01})

    assert shares.over() == {1}
    clock.now += 1.5
    assert shares.debts() == {1: 0.25}
    clock.now += 0.49
    assert shares.over() == {1}
    clock.now += 0.02
    assert shares.over() == set()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["charge", "wait", "ask"]),
            st.integers(1, 4),
            st.floats(0.0, 3.0),
        ),
        max_size=30,
    )
)
def test_over_a_share_is_whose_balance_says_so(steps: list[tuple[str, int, float]]) -> None:
    """Whoever was charged or asked for when: only those in debt are looked at."""
    clock = Clock()
    shares = shares_of(clock)
    for do, tenant, seconds in steps:
        if do == "charge":
            shares.charge({tenant: seconds})
        elif do == "wait":
            clock.now += seconds
        shares.saw([1, 2])
        assert do != "ask" or shares.over() == {t for t in range(1, 5) if shares.balance(t) < 0}
    assert shares.over() == {t for t in range(1, 5) if shares.balance(t) < 0}


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
