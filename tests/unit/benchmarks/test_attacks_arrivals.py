"""The figures by which an attack is judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.attacks.arrivals import (
    MAX_SECONDS_TO_RECOVER,
    NOISE_SECONDS,
    Sent,
    Suffered,
    Waits,
    faults,
    recovered,
    since,
    usual,
    waits,
)

QUICK = Waits(0.01, 0.02, 0.03)
SERVED = Suffered(QUICK, QUICK, QUICK, lost=0, turned_away=0, recovered=0.0)


def ten_a_second(count: int, wait: float, begin: float = 0.0) -> list[Sent]:
    return [Sent(begin + n / 10, "202", begin + n / 10 + wait) for n in range(count)]


def test_percentiles_are_of_the_times_from_when_it_was_due() -> None:
    """An update that waits for its predecessor's answer has waited, too."""
    sent = [Sent(float(n), "202", n + n / 1000) for n in range(1, 101)]

    assert waits(sent, now=1000.0) == Waits(
        pytest.approx(0.051), pytest.approx(0.1), pytest.approx(0.1)
    )


def test_what_has_not_come_out_has_waited_until_now() -> None:
    """Otherwise a platform that stands still would look quick."""
    sent = [*ten_a_second(9, 0.01), Sent(2.0)]

    assert waits(sent, now=50.0).longest == 48.0


def test_it_is_as_before_from_the_first_quick_second_on() -> None:
    """What was due before that second may have come late."""
    sent = ten_a_second(20, 5.0) + ten_a_second(30, 0.01, begin=2.0)

    assert recovered(sent, end=1.0, limit=0.05, now=10.0) == pytest.approx(1.0)


def test_at_the_limit_it_is_as_before_and_beyond_it_is_not() -> None:
    sent = [Sent(n / 10, "202", n / 10 + 0.0) for n in range(40)]
    slow = [replace(each, arrived=each.due + 0.5) for each in sent]

    assert recovered(slow, 0.0, limit=0.5 + 1e-9, now=10.0) == 0.0
    assert recovered(slow, 0.0, limit=0.49, now=10.0) is None


def test_a_second_that_is_not_over_says_nothing() -> None:
    """Updates of the last moment may still come late."""
    sent = ten_a_second(10, 0.01)

    assert recovered(sent, end=0.0, limit=0.1, now=1.05) is None
    assert recovered(sent, end=0.0, limit=0.1, now=1.1) == 0.0


def test_who_sends_nothing_is_not_as_before() -> None:
    assert recovered([], end=0.0, limit=1.0, now=30.0) is None


def test_a_quick_machine_s_noise_is_not_an_attack() -> None:
    assert usual(Waits(0.01, NOISE_SECONDS / 4, 0.03)) == NOISE_SECONDS
    assert usual(Waits(0.01, NOISE_SECONDS, 0.03)) == 2 * NOISE_SECONDS


def test_making_ready_is_told_apart_where_it_took_a_second() -> None:
    """Of a few updates every one would be a p99."""
    assert since(10.0, 11.0) == 11.0
    assert since(10.0, 10.9) == 10.0


def test_at_every_border_the_innocent_was_served() -> None:
    at = replace(
        SERVED,
        during=replace(QUICK, p99=usual(QUICK)),
        recovered=MAX_SECONDS_TO_RECOVER,
    )

    assert faults(at) == []


@pytest.mark.parametrize(
    "suffered",
    [
        replace(SERVED, during=replace(QUICK, p99=usual(QUICK) + 0.001)),
        replace(SERVED, made_ready=replace(QUICK, p99=usual(QUICK) + 0.001)),
        replace(SERVED, lost=1),
        replace(SERVED, turned_away=1),
        replace(SERVED, recovered=MAX_SECONDS_TO_RECOVER + 0.001),
        replace(SERVED, recovered=None),
    ],
    ids=["slow", "slow before", "lost", "turned away", "late", "never"],
)
def test_beyond_any_border_it_was_not(suffered: Suffered) -> None:
    assert len(faults(suffered)) == 1
