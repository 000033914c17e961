"""How long updates are believed to take, and who is held to hold up others."""

from __future__ import annotations

from pipeline.sharing.costs import Trees
from pipeline.sharing.pace import (
    HOLDS_UP_SECONDS,
    PREPARES_FOR_SECONDS,
    RUNNERS_SECONDS,
    SLOW_FOR_SECONDS,
    SLOW_SECONDS,
    UNKNOWN_SECONDS,
    Pace,
)

HALF = SLOW_SECONDS / 2
QUICK = 0.001


def test_what_is_slower_than_believed_is_believed_at_once() -> None:
    pace = Pace()
    assert pace.of(1) == UNKNOWN_SECONDS

    pace.learn({1: Trees(10, 0.01)})
    assert pace.of(1) == 0.001
    pace.learn({1: Trees(10, 1.0)})
    assert pace.of(1) == 0.1
    pace.learn({1: Trees(10, 0.0)})
    assert 0.05 < pace.of(1) < 0.1


def test_what_the_machine_had_no_processor_for_makes_nobody_slow() -> None:
    pace = Pace()
    for _ in range(9):
        pace.learn({1: Trees(1, 5.0, QUICK, 0.0, ran=True)})
    assert not pace.is_slow(1)


def test_whoever_has_no_process_would_be_waited_for() -> None:
    ready = {1}
    pace = Pace(ready.__contains__)
    pace.learn({each: Trees(1, QUICK, QUICK, 0.0, ran=True) for each in (1, 2)})
    assert not pace.is_slow(1)
    assert pace.is_slow(2)
    ready.clear()
    assert pace.is_slow(1)


def test_where_scripts_have_not_run_for_long_no_process_is_waited_for() -> None:
    """But where they do now and then one is."""
    now = [100.0]
    pace = Pace(lambda _tenant: False, lambda: now[0])
    for _ in range(10):
        pace.learn({1: Trees(1, QUICK, QUICK, 0.0, ran=True)})
        for _ in range(9):
            now[0] += RUNNERS_SECONDS / 10
            assert pace.is_slow(1)
            pace.learn({1: Trees(1, QUICK, QUICK)})
    now[0] += RUNNERS_SECONDS / 5
    assert not pace.is_slow(1)


def test_in_whose_trees_no_scripts_run_needs_no_process() -> None:
    pace = Pace(lambda _tenant: False)
    assert pace.is_slow(1)
    pace.learn({1: Trees(1, 9.0)})
    assert not pace.is_slow(1)


def test_who_is_slow_now_and_then_is_slow() -> None:
    """Else expensive updates between cheap ones would always be computed with the others'."""
    pace, slow = Pace(), 0
    pace.learn({1: Trees(1)})
    for number in range(400):
        pace.learn({1: Trees(1, 0.0, 0.9 if number % 4 == 0 else 0.0)})
        slow += pace.is_slow(1)
    assert slow > 300


def test_who_has_held_up_others_does_not_do_so_soon_again() -> None:
    """Averages forget what comes once in a hundred updates."""
    now = [100.0]
    pace = Pace(clock=lambda: now[0])
    pace.learn({1: Trees(1)})
    pace.learn({1: Trees(4, 0.4, HOLDS_UP_SECONDS)})
    for _ in range(100):
        assert pace.is_slow(1)
        pace.learn({1: Trees(1, QUICK, QUICK)})
        now[0] += SLOW_FOR_SECONDS / 101
    now[0] += 1.0
    assert not pace.is_slow(1)


def test_so_is_whose_one_tree_among_many_quick_ones_took_too_long() -> None:
    """As a mean that is little."""
    pace = Pace()
    pace.learn({1: Trees(61, 0.4, 0.4)})
    assert not pace.is_slow(1)
    pace.learn({1: Trees(61, 0.4, 0.4, overlong=True)})
    assert pace.is_slow(1)


def test_who_is_met_for_the_first_time_is_not_slow_for_what_it_has_to_be_ready() -> None:
    """But is for a while who has more programs made ready: that may go on."""
    now = [100.0]
    pace = Pace(clock=lambda: now[0])
    pace.learn({1: Trees(1, 0.2, QUICK, 0.2)})
    assert not pace.is_slow(1)
    pace.learn({1: Trees(1, 0.1, QUICK, HOLDS_UP_SECONDS / 2)})
    assert not pace.is_slow(1)
    pace.learn({1: Trees(1, 0.1, QUICK, HOLDS_UP_SECONDS)})
    assert pace.is_slow(1)
    now[0] += PREPARES_FOR_SECONDS
    assert not pace.is_slow(1)


def test_many_quick_ones_at_once_have_not_held_up_others() -> None:
    pace = Pace()
    pace.learn({1: Trees(1000, 1.0, 1000 * QUICK)})
    assert not pace.is_slow(1)


def test_who_is_slow_is_known_by_what_its_trees_take() -> None:
    """Whom nobody has met may be: a process is started for it."""
    pace = Pace()
    assert pace.is_slow(1)

    pace.learn({1: Trees(2, 9.0, SLOW_SECONDS), 2: Trees(1, 9.0, SLOW_SECONDS)})
    assert not pace.is_slow(1), "half of that an update"
    assert pace.of_tree(1) == HALF
    assert pace.is_slow(2)
    for _ in range(2):
        pace.learn({2: Trees(1, 9.0)})
    assert not pace.is_slow(2)
