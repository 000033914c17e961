"""Who is over a share of a partition's time, and what batches are cut by."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.sharing.pace import SLOW_SECONDS, UNKNOWN_SECONDS, Pace
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
    clock.now += 1.99
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


def test_what_is_slower_than_believed_is_believed_at_once() -> None:
    pace = Pace()
    assert pace.of(1) == UNKNOWN_SECONDS

    pace.learn({1: 10}, {1: 0.01}, {})
    assert pace.of(1) == 0.001
    pace.learn({1: 10}, {1: 1.0}, {})
    assert pace.of(1) == 0.1
    pace.learn({1: 10}, {1: 0.0}, {})
    assert 0.05 < pace.of(1) < 0.1


def test_what_the_machine_had_no_processor_for_makes_nobody_slow() -> None:
    pace = Pace()
    for _ in range(9):
        pace.learn({1: 1}, {1: 5.0}, {1: 0.001})
    assert not pace.is_slow(1)


def test_whoever_has_no_process_would_be_waited_for() -> None:
    ready = {1}
    pace = Pace(ready.__contains__)
    pace.learn({1: 1, 2: 1}, {}, {1: 0.001, 2: 0.001})
    assert not pace.is_slow(1)
    assert pace.is_slow(2)
    ready.clear()
    assert pace.is_slow(1)


def test_whoever_has_no_scripts_needs_no_process() -> None:
    """Only what others derive from its streams is computed, by theirs."""
    pace = Pace(lambda _tenant: False)
    assert pace.is_slow(1)
    pace.learn({1: 1}, {1: 9.0}, {})
    assert not pace.is_slow(1)


def test_who_is_slow_now_and_then_is_slow() -> None:
    """Else expensive updates between cheap ones would always be computed with the others'."""
    pace, slow = Pace(), 0
    pace.learn({1: 1}, {}, {1: 0.0})
    for number in range(400):
        pace.learn({1: 1}, {}, {1: 0.9 if number % 4 == 0 else 0.0})
        slow += pace.is_slow(1)
    assert slow > 300


def test_who_is_slow_is_known_by_its_scripts() -> None:
    """Whom nobody has met may be: a process is started for it."""
    pace = Pace()
    assert pace.is_slow(1)

    pace.learn({1: 2, 2: 1}, {1: 9.0, 2: 9.0}, {1: SLOW_SECONDS, 2: SLOW_SECONDS})
    assert not pace.is_slow(1), "half of that an update"
    assert pace.is_slow(2)
    for _ in range(2):
        pace.learn({2: 1}, {2: 9.0}, {2: 0.0})
    assert not pace.is_slow(2)
